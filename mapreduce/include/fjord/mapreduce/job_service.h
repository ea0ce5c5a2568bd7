#pragma once

#include <cstdint>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/application.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

/// Wrong on purpose, so that tests can be seen to notice it.
struct JobSabotage {
  bool count_repeated_twice = false;  ///< Direct: tuples of buckets that are read again count again.
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
  std::uint64_t results_kept_bytes = std::uint64_t{512} << 20;  ///< Of ended jobs; the oldest go first.
  Duration wait_max = seconds(30);                              ///< How long listJobs waits for the end of a job.
  JobSabotage sabotage = {};
};

/// Runs jobs: submitJob, listJobs, cancelJob. Jobs are held in the memory of this process, and so are the results of
/// those with the direct shuffle: if it ends, they are gone. Declares the tunable mapreduce.job_memory_bytes.
///
/// Threading: handle() from anywhere; all else on an executor of its own. Lifetime: everything it is given outlives it.
class JobService final : public rpc::Service {
 public:
  JobService(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport,
             rpc::SnapshotHolder& snapshot, const ApplicationRegistry& applications);
  ~JobService() override;

  bool handle(rpc::Request& request, rpc::Responder& respond) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// OK if a job of that id and spec could be run with these types. Errors name the parameter or field and what is known:
/// InvalidArgument, UnknownType, InvalidField, InvalidSelection.
Status check_job(const std::string& job_id, const rpc::JobSpec& spec, const ApplicationRegistry& applications,
                 const DocumentTypeRepo& types);

}  // namespace fjord::mapreduce
