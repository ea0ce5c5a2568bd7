#pragma once

#include <cstdint>
#include <memory>

#include "fjord/common/runtime.h"
#include "fjord/mapreduce/application.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::mapreduce {

struct JobServiceOptions {
  unsigned running_max = 4;       ///< Others are queued.
  unsigned finished_kept = 1000;  ///< Jobs whose status is still told after they ended.
  unsigned task_tries_max = 5;    ///< A task that fails so often fails its job.
  /// What the tuples of all tasks on one storage node may take together: bounds the visitors per node of a job that
  /// does not say how many it wants.
  std::uint64_t node_memory_bytes = std::uint64_t{1} << 30;
  unsigned visitors_per_node_max = 16;
  Duration no_progress_limit = seconds(60);
};

/// Runs jobs: submitJob, listJobs, cancelJob. Jobs are held in the memory of this process: if it ends, its jobs end.
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
