#pragma once

#include "job_removals.h"
#include "running_jobs.h"

namespace fjord::mapreduce {

/// Carries out controlJob: on a job of this process, or in the record of another process's job.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class JobControl {
 public:
  JobControl(ServiceContext& context, JobTable& table, RunningJobs& running, JobRemovals& removals)
      : context_(context), table_(table), running_(running), removals_(removals) {}

  void control(const rpc::ControlJob& request, UniqueFunction<void(Status)> done);

 private:
  void control_record(const rpc::ControlJob& request, UniqueFunction<void(Status)> done);

  ServiceContext& context_;
  JobTable& table_;
  RunningJobs& running_;
  JobRemovals& removals_;
};

}  // namespace fjord::mapreduce
