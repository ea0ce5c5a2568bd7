#pragma once

#include <string>
#include <vector>

#include "running_jobs.h"

namespace fjord::mapreduce {

/// Takes in jobs: checks them, asks the storage nodes for their applications, and records those that put documents
/// before they are accepted.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class JobSubmission {
 public:
  JobSubmission(ServiceContext& context, JobTable& table, RunningJobs& running)
      : context_(context), table_(table), running_(running) {}

  /// `covered`: number of passes, from the first, whose applications the storage nodes were already asked about.
  void submit(const rpc::SubmitJob& request, rpc::Responder respond, std::size_t covered = 0);

 private:
  void submit_again(const rpc::SubmitJob& request, LocalJob& job, rpc::Responder respond);
  void accept(const rpc::SubmitJob& request, std::vector<std::string> versions, rpc::Responder respond);
  bool is_direct(const rpc::SubmitJob& request) const;

  ServiceContext& context_;
  JobTable& table_;
  RunningJobs& running_;
};

}  // namespace fjord::mapreduce
