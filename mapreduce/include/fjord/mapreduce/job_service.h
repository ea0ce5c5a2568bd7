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

/// Wrong on purpose, so that tests can be seen to notice it.
struct JobSabotage {
  bool count_repeated_twice = false;        ///< Direct: tuples of buckets that are read again count again.
  bool ignore_owners = false;               ///< A job goes on although another process has taken it over.
  bool count_again_after_takeover = false;  ///< Who takes a job over maps buckets again that the record counts.
  bool lose_dead_letters = false;           ///< Who takes a job over forgets them.
};

struct JobServiceOptions {
  unsigned running_max = 4;       ///< Others are queued.
  unsigned finished_kept = 1000;  ///< Jobs whose status is still told after they ended.
  unsigned task_tries_max = 5;    ///< A task that fails so often fails its job.
  /// What the tuples of all tasks on one storage node may take together: bounds the visitors per node of a job that
  /// does not say how many it wants.
  std::uint64_t node_memory_bytes = std::uint64_t{1} << 30;
  unsigned visitors_per_node_max = 16;
  unsigned direct_visitors_per_node = 2;  ///< Of jobs with the direct shuffle that do not say how many they want.
  Duration no_progress_limit = seconds(60);
  /// VisitorSessionOptions::backup_after of all tasks.
  Duration backup_after = seconds(2);
  std::uint64_t results_kept_bytes = std::uint64_t{512} << 20;  ///< Of ended jobs; the oldest go first.
  Duration wait_max = seconds(30);                              ///< How long listJobs waits for the end of a job.

  std::string name = "distributor.0";  ///< Of the process, as cluster states count it.
  /// A direct job gets a record if it takes longer than this; until then it is lost with its process.
  Duration record_after = milliseconds(200);
  Duration renew_interval = seconds(3);  ///< How often the record of a job that runs is written.
  /// A job whose record has not changed for so long has no owner any more.
  Duration lease = seconds(10);
  /// Puts and removes of a task that was given up, or of a former process, may be under way for so long. A job whose
  /// rows become documents is not done before: another one may put newer rows there as soon as it is.
  Duration strays_max = kPutTaskIdleMax + kTaskPutTimeout;
  Duration scan_interval = seconds(3);                         ///< How often jobs without an owner are looked for.
  std::uint64_t recorded_rows_bytes = std::uint64_t{1} << 20;  ///< Results of a direct job up to this are recorded.
  std::size_t records_kept = 1000;                             ///< Of ended jobs, in the whole cluster.
  std::function<void()> refresh_snapshot = {};                 ///< Called before the cluster state is looked at.
  JobSabotage sabotage = {};
};

/// Runs jobs: submitJob, listJobs, cancelJob, controlJob. A job has a record in the store, unless it is direct and
/// short, and goes on elsewhere if this process ends; jobs of other processes that have ended go on here. Results of
/// direct jobs are in the memory of this process, and beside the record if they are few. Declares the tunables
/// mapreduce.job_memory_bytes and mapreduce.foreground_p99_target_ms.
///
/// Threading: handle() from anywhere; all else on an executor of its own. Lifetime: everything it is given outlives it.
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

/// OK if a job of that id and spec could be run with these types. Errors name the parameter or field and what is known:
/// InvalidArgument, UnknownType, InvalidField, InvalidSelection.
Status check_job(const std::string& job_id, const rpc::JobSpec& spec, const ApplicationRegistry& applications,
                 const std::shared_ptr<const DocumentTypeRepo>& types);

}  // namespace fjord::mapreduce
