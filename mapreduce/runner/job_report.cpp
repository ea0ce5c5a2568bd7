#include "job_report.h"

#include <fmt/core.h>
#include <utility>

namespace fjord::mapreduce {

JobState JobReport::state() const {
  JobState state = job_;
  state.counts.documents_read += tasks_.documents_open();
  state.counts.tasks_repeated = tasks_.repeated();
  state.processor_us = tasks_.processor_us();
  return state;
}

JobState JobReport::record() const {
  JobState record = state();
  record.counts.documents_read = job_.counts.documents_read;  // A task that has not ended begins again after a restart.
  if (auto cursor = step_.cursor()) record.resume = std::move(*cursor);
  return record;
}

JobOutlook JobReport::outlook() const {
  const bool has_tasks = job_.phase == rpc::JobPhase::Map || job_.phase == rpc::JobPhase::Reduce;
  JobOutlook outlook = has_tasks ? tasks_.outlook() : JobOutlook();
  if (has_tasks || job_.phase == rpc::JobPhase::Put) outlook.bound_by = bound_by();
  return outlook;
}

std::string JobReport::bound_by() const {
  if (job_.paused) return "paused";
  if (step_.is_running()) return tasks_.bound_by();
  const Duration late = late_writes_.left(clock_.now());
  if (late == Duration(0)) return "its record";
  return fmt::format("writes of tasks that were given up ({} s at most)",
                     std::chrono::ceil<std::chrono::seconds>(late).count());
}

}  // namespace fjord::mapreduce
