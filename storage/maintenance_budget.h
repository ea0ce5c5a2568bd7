#pragma once

#include <atomic>
#include <cstdint>

#include "fjord/common/runtime.h"
#include "yielding_rate.h"

namespace fjord::storage {

/// How many bytes a storage node may move for maintenance, sent and received together: a token bucket without credit.
/// What was moved is a debt that is paid off at the current rate, and nothing begins before it is. So over any time the
/// node moves no more than rate x time and, for each merge that was under way, one block.
///
/// The rate is a YieldingRate between the tunables maintenance.bytes_per_s_min and maintenance.bytes_per_s.
/// Nobody waits in here: who may not go on is told how long, and asks again.
///
/// Threading: every thread, without a lock, but end_period() from one alone. Lifetime: `runtime` outlives it.
class MaintenanceBudget {
 public:
  enum class Direction { In, Out, Scan };

  explicit MaintenanceBudget(Runtime& runtime);

  /// Foreground operations had to wait for so long until their stripe turned to them.
  void note_foreground(Duration wait) { waits_.add(wait); }

  /// How long until something may be moved; zero: now. Never more than a period, after which the rate may be another.
  Duration wait(MonotonicTime now) const;
  /// Something was moved.
  void charge(MonotonicTime now, std::uint64_t bytes, Direction direction);
  /// Received, which costs nothing.
  void count_metadata(std::uint64_t bytes) { metadata_.add(bytes); }
  /// Maintenance waited for so long because it was told to.
  void note_throttled(Duration waited);

  /// To be called every YieldingRate::kPeriod.
  void end_period();

  double bytes_per_s() const { return rate_.load(std::memory_order_relaxed); }

 private:
  YieldingRate::Limits limits() const;

  const Tunable& ceiling_;
  const Tunable& floor_;
  YieldingRate controller_;
  WaitCounts waits_;
  std::atomic<double> rate_;
  std::atomic<std::int64_t> paid_us_;  ///< On the monotonic clock: when the debt is paid off.
  std::atomic<bool> moved_{false};     ///< Since the last period ended.
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
