#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "fjord/common/runtime.h"
#include "yielding_rate.h"

namespace fjord::storage {

/// Limits the bytes per second that a storage node moves for maintenance, sent and received together. It is a token
/// bucket without credit: moved bytes are a debt that is paid off at the current rate, and no new move begins before
/// the debt is paid. So in any span of time the node moves at most rate x time plus one block for each running merge.
///
/// The rate is a YieldingRate between the tunables maintenance.bytes_per_s_min and maintenance.bytes_per_s. Data that
/// only changes its place has a second debt, at maintenance.moves_bytes_per_s, while users send operations: unlike
/// missing replicas, moves can wait.
/// No call blocks: a caller that has to wait receives the time, and asks again afterwards.
///
/// Threading: from any thread, without a lock, except end_period(), which one thread calls. Lifetime: `runtime`
/// outlives it.
class MaintenanceBudget {
 public:
  enum class Direction { In, Out, Scan };
  enum class Purpose {
    Safety,  ///< The work repairs missing or differing replicas, or removes garbage.
    Move,    ///< The work only moves data to another place.
  };
  static Purpose purpose_of(bool only_moves) { return only_moves ? Purpose::Move : Purpose::Safety; }

  explicit MaintenanceBudget(Runtime& runtime);

  /// Records the time for which foreground operations waited for their stripe.
  void note_foreground(Duration wait) { waits_.add(wait); }

  /// Returns the time until data may be moved; zero: now. It is at most one period, because the rate may change then.
  Duration wait(MonotonicTime now, Purpose purpose) const;
  /// Records moved bytes as debt.
  void charge(MonotonicTime now, std::uint64_t bytes, Direction direction, Purpose purpose);
  /// Counts received metadata, which does not use the budget.
  void count_metadata(std::uint64_t bytes) { metadata_.add(bytes); }
  /// Records the time for which maintenance waited because of this budget.
  void note_throttled(Duration waited);

  /// Must be called every YieldingRate::kPeriod. `users_come` is true if users sent operations lately.
  void end_period(bool users_come);

  double bytes_per_s() const { return rate_.load(std::memory_order_relaxed); }

 private:
  /// Moved bytes that are not yet paid off. Threading: from any thread.
  class Debt {
   public:
    /// Returns the time until the debt is paid off.
    Duration left(MonotonicTime now) const;
    void add(MonotonicTime now, std::uint64_t bytes, double bytes_per_s);

   private:
    /// Monotonic time at which the debt is paid off, in µs.
    std::atomic<std::int64_t> paid_us_{std::numeric_limits<std::int64_t>::min()};
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
  std::atomic<bool> moved_{false};  ///< True if something was moved since the last period ended.
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
