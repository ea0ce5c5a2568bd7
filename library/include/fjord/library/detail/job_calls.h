#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/library/detail/client_core.h"
#include "fjord/mapreduce/job_results.h"

/// Calls about jobs that ask several processes. For the library and the command line.
namespace fjord {

bool has_ended(const rpc::JobStatus& job);
/// "map", "done"
std::string_view phase_text(rpc::JobPhase phase);
/// Returns the progress over all passes, 0 to 1.
double fraction_done(const rpc::JobStatus& job);

/// Asks every distributor for a job and returns the newest answer. A distributor waits for the job's end as long as the
/// request says. Errors: NotFound if no distributor knows the job; that of a distributor that did not answer.
Result<rpc::ListJobsReply> ask_for_job(Connection& connection, rpc::ListJobs request, Duration timeout);
/// As the function above, but does not wait: calls `done` on the client's executor.
void ask_for_job(Connection& connection, rpc::ListJobs request, Duration timeout,
                 UniqueFunction<void(Result<rpc::ListJobsReply>)> done);

/// How to wait for the end of a job.
struct JobWatch {
  /// Submitted again if no distributor knows the job: its process ended before it wrote a job record. Null: it is not.
  const rpc::JobSpec* spec = nullptr;
  Duration timeout{0};                  ///< Failed calls are repeated for this long.
  Duration time_limit{0};               ///< The wait ends as Timeout after this time; 0: no limit.
  std::uint32_t results_bytes_max = 0;  ///< Limit of the results in the answer, in bytes; 0: none.
  std::function<void(const rpc::JobStatus&)> on_progress = {};  ///< Called from time to time, and at the end.
  std::stop_token stop = {};  ///< A stop request ends the wait within half a second as Cancelled.
  bool was_ended = false;     ///< Out: the time limit or a stop request has ended the wait. The job goes on.
};

/// Asks until the job has ended. Errors: those of the calls; those of JobWatch.
Result<rpc::ListJobsReply> wait_for_job(Connection& connection, const std::string& job, JobWatch& watch);

/// Reads the results of a job that is done by rising key, about `window_bytes` of them at a time; 0: all at once.
///
/// Threading: one thread at a time, which waits. Lifetime: `connection` outlives it.
class JobResultReader {
 public:
  JobResultReader(Connection& connection, rpc::JobStatus job, std::uint64_t window_bytes, std::uint64_t bytes_max = 0);
  ~JobResultReader();
  JobResultReader(const JobResultReader&) = delete;
  JobResultReader& operator=(const JobResultReader&) = delete;

  /// Returns the next results; none: there are no more. Errors: as JobResults.
  Result<std::vector<mapreduce::KeyedResult>> next();

 private:
  Connection& connection_;
  rpc::SnapshotHolder snapshot_;
  std::unique_ptr<mapreduce::JobResults> results_;  ///< Used on the executor of the connection.
};

/// Reads the results of a job that is done, at most `bytes_max` bytes of them; 0: all. Errors: as JobResults.
Result<std::vector<mapreduce::KeyedResult>> read_results(Connection& connection, const rpc::JobStatus& job,
                                                         std::uint64_t bytes_max = 0);
/// Returns the results in `reply`, or reads them if it has none.
Result<std::vector<mapreduce::KeyedResult>> results_of(Connection& connection, rpc::ListJobsReply& reply);

}  // namespace fjord
