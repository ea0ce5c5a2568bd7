#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/library/detail/job_calls.h"
#include "inbox.h"

namespace fjord::gateway {

/// Waits for the end of a job without a thread: asks all distributors again and again.
/// Threading: the executor of `inbox`. Lifetime: ends itself; `client` and `clock` outlive it.
class JobWait : public std::enable_shared_from_this<JobWait> {
 public:
  /// Receives the status of the job: ended, or as it was at the deadline. Errors: NotFound; those of the calls.
  using Done = std::function<void(Result<rpc::JobStatus>)>;

  /// With `spec`, submits the job again if no distributor knows it, because its process ended before it wrote a record.
  JobWait(Client& client, std::shared_ptr<Inbox> inbox, Clock& clock, std::string job,
          std::optional<rpc::JobSpec> spec);

  void start(Duration timeout, Done done);
  /// Ends the wait with an error.
  void end(const Status& why) { finish(why); }

 private:
  void ask();
  void ask_later();
  void on_answer(Result<rpc::ListJobsReply> reply);
  void submit_again();
  void finish(Result<rpc::JobStatus> result);

  Client& client_;
  const std::shared_ptr<Inbox> inbox_;
  Clock& clock_;
  const std::string job_;
  const std::optional<rpc::JobSpec> spec_;
  Done done_;
  bool with_records_ = false;  ///< Ask for the job's record, because no process runs the job.
  MonotonicTime deadline_;
  MonotonicTime answered_;  ///< Time of the last answer.
  std::optional<rpc::JobStatus> last_;
};

}  // namespace fjord::gateway
