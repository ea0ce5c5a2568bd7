#pragma once

#include <cstdint>
#include <string>

#include "job_table.h"

namespace fjord::mapreduce {

/// The answers to listJobs: from the jobs of this process, and from records.
///
/// Threading: confined to the service's executor. Lifetime: `context` and `table` outlive it.
class JobAnswers {
 public:
  JobAnswers(ServiceContext& context, JobTable& table) : context_(context), table_(table) {}

  void list(const rpc::ListJobs& request, rpc::Responder respond);
  /// Answers the calls that wait for the end of the job.
  void answer_waiters(LocalJob& job);

 private:
  rpc::ListJobsReply answer_to(const rpc::ListJobs& request) const;
  void wait(const rpc::ListJobs& request, LocalJob& job, rpc::Responder respond);
  void list_records(const rpc::ListJobs& request, rpc::Responder respond);
  void read_record(const rpc::ListJobs& request, rpc::Responder respond);
  void read_kept_rows(const rpc::ListJobs& request, rpc::Responder respond);
  JobAnswerOptions answer_options(const rpc::ListJobs& request, const JobOutlook* outlook) const;
  /// Returns the answer about a job. A job whose runner has ended is in clean-up until its results can be read.
  rpc::JobStatus status_of(const LocalJob& job, const rpc::ListJobs& request) const;

  ServiceContext& context_;
  JobTable& table_;
  std::uint64_t next_waiter_ = 1;
};

}  // namespace fjord::mapreduce
