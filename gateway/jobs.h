#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "call.h"
#include "context.h"
#include "job_wait.h"
#include "result_store.h"

namespace fjord::gateway {

/// Jobs and aggregations. It keeps no state of a job: a client may ask any distributor.
/// Threading: the executor of the context.
class Jobs {
 public:
  Jobs(Context& context, const Tunable& results_bytes_max) : context_(context), results_(context, results_bytes_max) {}

  void aggregate(api::Aggregate request, Call<api::AggregateReply> call);
  void start(api::StartJob request, Call<api::StartJobReply> call);
  void list(const api::GetJobs& request, Call<api::GetJobsReply> call);
  void await(const api::AwaitJob& request, Call<api::AwaitJobReply> call);
  void change(const api::ChangeJob& request, Call<api::ChangeJobReply> call);
  void results(const api::GetJobResults& request, Call<api::GetJobResultsReply> call);

  void end_idle() { results_.end_idle(); }
  /// Ends all calls that wait for the end of a job.
  void end_waits(const Status& why);

 private:
  /// Answers with Timeout after `timeout` if the call has no answer by then.
  template <typename Reply>
  void limit(const Call<Reply>& call, std::int64_t timeout_ms);
  void wait_for(const std::string& job, std::optional<rpc::JobSpec> spec, Duration timeout, JobWait::Done done);
  void on_aggregated(const api::Aggregate& request, const rpc::JobStatus& job, const Call<api::AggregateReply>& call);
  /// Refuses a call because results are too large, or ends it with another error.
  template <typename Reply>
  void end_without_results(const Status& status, const Call<Reply>& call) const;
  /// Returns the number of bytes of one answer.
  std::size_t page_bytes(std::int64_t asked) const;

  Context& context_;
  ResultStore results_;
  std::vector<std::weak_ptr<JobWait>> waits_;
};

}  // namespace fjord::gateway
