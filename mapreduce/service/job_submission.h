#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "running_jobs.h"

namespace fjord::mapreduce {

/// Takes in jobs: checks them, asks the storage nodes for their applications, and records those that put documents
/// before they are accepted. A program that comes with a job is loaded on a thread of its own, one after the other, so
/// that it holds up no other job.
///
/// Threading: confined to the service's executor. Lifetime: the arguments of the constructor outlive it.
class JobSubmission {
 public:
  JobSubmission(ServiceContext& context, JobTable& table, RunningJobs& running)
      : context_(context),
        table_(table),
        running_(running),
        loader_(context.scheduler.make_interactive_executor("job-loader")) {}

  void submit(const rpc::SubmitJob& request, rpc::Responder respond);
  /// Waits for the program that is being loaded. Called when the service's mailbox is closed.
  void end() { loader_.reset(); }

 private:
  /// Submissions of one job whose programs wait to be loaded, or are being loaded.
  struct Loading {
    rpc::SubmitJob request;
    std::vector<rpc::Responder> waiting;
  };

  void load(const rpc::SubmitJob& request, std::shared_ptr<const rpc::ClusterSnapshot> snapshot,
            rpc::Responder respond);
  void loaded(const std::string& job_id, const rpc::ClusterSnapshot& snapshot, const Status& status);
  /// Asks about the applications of the passes from index `covered` on, then accepts the job.
  void cover(const rpc::SubmitJob& request, const rpc::ClusterSnapshot& snapshot, std::size_t covered,
             rpc::Responder respond);
  void submit_again(const rpc::SubmitJob& request, LocalJob& job, rpc::Responder respond);
  void accept(const rpc::SubmitJob& request, std::vector<std::string> versions, rpc::Responder respond);
  bool is_direct(const rpc::SubmitJob& request) const;

  ServiceContext& context_;
  JobTable& table_;
  RunningJobs& running_;
  std::map<std::string, Loading> loading_;  ///< By job.
  std::unique_ptr<Executor> loader_;
};

}  // namespace fjord::mapreduce
