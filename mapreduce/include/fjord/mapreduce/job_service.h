#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/job_records.h"
#include "fjord/mapreduce/task_visitors.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

struct JobServiceOptions {
  unsigned running_max = 4;       ///< Jobs that run at once; further jobs are queued.
  unsigned finished_kept = 1000;  ///< Ended jobs whose status is kept in memory.
  unsigned task_tries_max = 5;    ///< Failures of one task after which its job fails.
  /// Memory in bytes that the tuples of all tasks of one job may take on one storage node. It bounds the visitors per
  /// node of a job that does not set their number.
  std::uint64_t node_memory_bytes = std::uint64_t{1} << 30;
  unsigned visitors_per_node_max = 16;
  unsigned direct_visitors_per_node = 2;  ///< Visitors of a direct job that does not set their number.
  /// Time without progress after which a job fails. It is longer than the minute for which the fleet controller holds
  /// down a node that has crashed too often (MonitorOptions::stable_period): such a node may be the only distributor.
  Duration no_progress_limit = seconds(90);
  /// After this time without progress a task may start again on another replica (VisitorSessionOptions).
  Duration backup_after = seconds(2);
  /// Maximum size of the results of ended jobs in memory, in bytes; the oldest are dropped first.
  std::uint64_t results_kept_bytes = std::uint64_t{512} << 20;
  Duration wait_max = seconds(30);  ///< Longest wait of listJobs for the end of a job.

  std::string name = "distributor.0";  ///< Name of this process, with its index in the cluster state.
  /// A direct job that runs longer than this gets a record. A shorter one is lost if its process ends.
  Duration record_after = milliseconds(200);
  Duration renew_interval = seconds(3);  ///< Interval between writes of a running job's record.
  /// A job has no owner any more if its record has not changed for this time.
  Duration lease = seconds(10);
  /// Longest time that puts and removes of an abandoned task, or of a former owner, are in flight. A job that abandoned
  /// a task while its rows became documents waits this long before it ends: from then on another job may put newer rows
  /// under the same ids.
  Duration late_writes_max = kPutTaskIdleMax + kTaskPutTimeout;
  Duration scan_interval = seconds(3);  ///< Interval between searches for jobs without an owner.
  /// Maximum size in bytes of the results of a direct job that are stored beside its record.
  std::uint64_t recorded_rows_bytes = std::uint64_t{1} << 20;
  SinkLimits writes = {};                       ///< What the process of a job has in flight of what it puts itself.
  std::size_t records_kept = 1000;              ///< Records of ended jobs that the cluster keeps.
  std::function<void()> refresh_snapshot = {};  ///< Called before the cluster state is read, to bring it up to date.
};

/// Runs jobs: submitJob, listJobs, cancelJob, controlJob. A job has a record in the store unless it is direct and
/// short. With a record it continues in another process if this one ends, and this service takes over the jobs of ended
/// processes. Results of direct jobs are in the memory of this process, and also beside the record if they are small.
/// Declares the tunables mapreduce.job_memory_bytes, mapreduce.foreground_p99_target_ms and
/// mapreduce.results_retention.
///
/// Threading: handle() may be called from any thread; all else runs on the service's own executor. Lifetime: everything
/// passed to the constructor outlives it.
class JobService final : public rpc::Service {
 public:
  JobService(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport,
             rpc::SnapshotHolder& snapshot, const ApplicationRegistry& applications, JobRecords& records);
  ~JobService() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns OK if a job with this id and specification can run with these types. Errors: InvalidArgument, UnknownType,
/// InvalidField, InvalidSelection; the message names the parameter or field and the known ones.
Status check_job(const std::string& job_id, const rpc::JobSpec& spec, const ApplicationRegistry& applications,
                 const std::shared_ptr<const DocumentTypeRepo>& types);

}  // namespace fjord::mapreduce
