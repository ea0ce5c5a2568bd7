#pragma once

#include <cstdint>
#include <optional>

#include "fjord/common/metrics.h"
#include "fjord/common/yield_controller.h"
#include "job_table.h"

namespace fjord::mapreduce {

/// Adjusts how many of their tasks jobs may run at a time, as a share, by the latency of users' operations.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class ForegroundGuard {
 public:
  ForegroundGuard(ServiceContext& context, JobTable& table, Runtime& runtime);

  /// Percentage of its tasks that a job may run.
  const std::int64_t& share_percent() const { return share_percent_; }
  /// A job has started: measures the foreground each second as long as one runs.
  void begin();

 private:
  void adjust();

  ServiceContext& context_;
  JobTable& table_;
  Tunable& p99_target_;
  HistogramPeriod foreground_;
  bool is_measuring_ = false;
  std::int64_t share_percent_ = 100;
  std::optional<YieldController> yield_;
  double yield_target_s_ = 0;
};

}  // namespace fjord::mapreduce
