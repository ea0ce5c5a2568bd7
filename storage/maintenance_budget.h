#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "fjord/common/runtime.h"
#include "yielding_rate.h"

namespace fjord::storage {

/// How many bytes a storage node may move for maintenance, sent and received together: a token bucket without credit.
/// What was moved is a debt that is paid off at the current rate, and nothing begins before it is. So over any time the
/// node moves no more than rate x time and, for each merge that was under way, one block.
///
/// The rate is a YieldingRate between the tunables maintenance.bytes_per_s_min and maintenance.bytes_per_s. What only
/// changes its place has, while users' operations come, a second debt besides, at maintenance.moves_bytes_per_s: it can
/// wait, other than copies that are missing.
/// Nobody waits in here: who may not go on is told how long, and asks again.
///
/// Threading: every thread, without a lock, but end_period() from one alone. Lifetime: `runtime` outlives it.
class MaintenanceBudget {
 public:
  enum class Direction { In, Out, Scan };
  enum class Purpose {
    Safety,  ///< Something is missing or differs, or is garbage.
    Move,    ///< Nothing is; it gets another place.
  };
  static Purpose purpose_of(bool only_moves) { return only_moves ? Purpose::Move : Purpose::Safety; }

  explicit MaintenanceBudget(Runtime& runtime);

  /// Foreground operations had to wait for so long until their stripe turned to them.
  void note_foreground(Duration wait) { waits_.add(wait); }

  /// How long until something may be moved; zero: now. Never more than a period, after which the rate may be another.
  Duration wait(MonotonicTime now, Purpose purpose) const;
  /// Something was moved.
  void charge(MonotonicTime now, std::uint64_t bytes, Direction direction, Purpose purpose);
  /// Received, which costs nothing.
  void count_metadata(std::uint64_t bytes) { metadata_.add(bytes); }
  /// Maintenance waited for so long because it was told to.
  void note_throttled(Duration waited);

  /// To be called every YieldingRate::kPeriod; whether users' operations come.
  void end_period(bool users_come);

  double bytes_per_s() const { return rate_.load(std::memory_order_relaxed); }

 private:
  /// What was moved and is not paid off. Threading: every thread.
  class Debt {
   public:
    /// How long until it is.
    Duration left(MonotonicTime now) const;
    void add(MonotonicTime now, std::uint64_t bytes, double bytes_per_s);

   private:
    std::atomic<std::int64_t> paid_us_{std::numeric_limits<std::int64_t>::min()};  ///< When, on the monotonic clock.
  };

  YieldingRate::Limits limits() const;

  const Tunable& ceiling_;
  const Tunable& floor_;
  const Tunable& moves_;
  YieldingRate controller_;
  WaitCounts waits_;
  std::atomic<double> rate_;
  Debt debt_;
  Debt debt_of_moves_;
  std::atomic<bool> users_come_{false};
  std::atomic<bool> moved_{false};  ///< Since the last period ended.
  std::atomic<std::uint64_t> throttled_us_{0};
  Counter& in_;
  Counter& out_;
  Counter& scanned_;
  Counter& metadata_;
  Counter& throttled_ms_;
  Gauge& rate_gauge_;
  Gauge& wait_gauge_;
  Gauge& limit_gauge_;
};

}  // namespace fjord::storage
