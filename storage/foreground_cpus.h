#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "fjord/common/runtime.h"

namespace fjord::storage {

/// Keeps processors free of visitors and jobs while users send operations. The reason: a thread that wakes up on an
/// idle processor runs at once, and a thread that has to interrupt another one does not
/// (docs/experiments/job-foreground.md).
///
/// Begins with the first period in which at least kOperationsLeast foreground operations came, and ends kHold after the
/// last such period. If operations are rarer, they have to compete with jobs; half of them are not delayed by this.
///
/// Threading: note() from any thread; end_period() from one thread. Lifetime: `runtime` outlives it.
class ForegroundCpus {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(200);
  static constexpr std::uint64_t kOperationsLeast = 4;  ///< Operations in one period; this number means 20 per second.
  static constexpr Duration kHold = std::chrono::seconds(10);

  explicit ForegroundCpus(Runtime& runtime);

  /// Counts foreground operations that have just arrived.
  void note(std::uint64_t operations) { operations_.fetch_add(operations, std::memory_order_relaxed); }
  /// Must be called every kPeriod.
  void end_period(MonotonicTime now);
  /// Returns true if users sent operations lately. Threading: only from the thread that calls end_period().
  bool users_come() const { return busy_.has_value(); }

 private:
  Scheduler& scheduler_;
  const Tunable& percent_;
  Gauge& kept_free_;
  std::atomic<std::uint64_t> operations_{0};
  /// End of the last period with at least kOperationsLeast operations; empty if it ended more than kHold ago.
  std::optional<MonotonicTime> busy_;
};

}  // namespace fjord::storage
