#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "fjord/common/clock.h"

namespace fjord::storage {

/// The load that this node reports in its answers: the share of their time that stripes spend on operations, or what
/// the process uses of the machine if that is more. An average over about the last second.
///
/// Threading: add() and permille() from any thread, without a lock; end_period() from one thread.
class UtilisationMeter {
 public:
  /// `machine_load` may be empty: then only the time of stripes counts.
  UtilisationMeter(MonotonicTime now, unsigned stripes, std::function<double()> machine_load);

  /// A stripe was busy for `busy`.
  void add(Duration busy) { busy_us_.fetch_add(busy.count(), std::memory_order_relaxed); }
  /// To be called several times a second.
  void end_period(MonotonicTime now);
  /// Returns the load in thousandths, 1 to 1000.
  std::uint32_t permille() const { return permille_.load(std::memory_order_relaxed); }

 private:
  const double stripes_;
  const std::function<double()> machine_load_;
  std::atomic<std::int64_t> busy_us_{0};
  std::atomic<std::uint32_t> permille_{1};
  MonotonicTime measured_at_;
  std::int64_t measured_busy_us_ = 0;
  double load_ = 0.0;
};

}  // namespace fjord::storage
