#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "fjord/common/runtime.h"

namespace fjord::storage {

/// Keeps processors free of visitors and jobs while users' operations come, because a thread that wakes on a processor
/// of its own is there at once, and one that has to interrupt another is not (docs/experiments/job-foreground.md).
///
/// Begins with the first period in which kOperationsLeast operations came that somebody waits for, and ends kHold after
/// the last such. Fewer find their way between jobs as they are: half of them do not notice.
///
/// Threading: note() from every thread; end_period() from one alone. Lifetime: `runtime` outlives it.
class ForegroundCpus {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(200);
  static constexpr std::uint64_t kOperationsLeast = 4;  ///< In a period: 20 a second.
  static constexpr Duration kHold = std::chrono::seconds(10);

  explicit ForegroundCpus(Runtime& runtime);

  void note(std::uint64_t operations) { operations_.fetch_add(operations, std::memory_order_relaxed); }
  /// To be called every kPeriod.
  void end_period(MonotonicTime now);
  /// Users' operations came lately. By who calls end_period().
  bool users_come() const { return busy_.has_value(); }

 private:
  Scheduler& scheduler_;
  const Tunable& percent_;
  Gauge& kept_free_;
  std::atomic<std::uint64_t> operations_{0};
  std::optional<MonotonicTime> busy_;  ///< The end of the last period that had as many.
};

}  // namespace fjord::storage
