#pragma once

#include <string>

#include "current_step.h"
#include "fjord/mapreduce/job_state.h"
#include "job_tasks.h"
#include "late_writes.h"

namespace fjord::mapreduce {

/// What a job says of itself: its state, its record, and what it waits for. A view of the runner's parts, which outlive
/// it.
class JobReport {
 public:
  JobReport(const JobState& job, const JobTasks& tasks, const CurrentStep& step, const LateWrites& late_writes,
            Clock& clock)
      : job_(job), tasks_(tasks), step_(step), late_writes_(late_writes), clock_(clock) {}

  JobState state() const;
  /// The state with the cursor from which another process can continue.
  JobState record() const;
  JobOutlook outlook() const;

 private:
  std::string bound_by() const;

  const JobState& job_;
  const JobTasks& tasks_;
  const CurrentStep& step_;
  const LateWrites& late_writes_;
  Clock& clock_;
};

}  // namespace fjord::mapreduce
