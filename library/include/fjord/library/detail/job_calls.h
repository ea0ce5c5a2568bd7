#pragma once

#include <cstdint>
#include <functional>
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
/// 0 to 1, over all passes.
double fraction_done(const rpc::JobStatus& job);

/// Asks every distributor for a job, and waits for its end as long as the request says. Errors: NotFound if none of
/// them knows the job; that of one that did not answer.
Result<rpc::ListJobsReply> ask_for_job(Connection& connection, rpc::ListJobs request, Duration timeout);

/// Asks until the job has ended, calling `on_progress` now and then. The answer also has results of a job that holds
/// them, up to about `results_bytes_max` bytes. A job that cannot be asked for is asked for again until `timeout`. One
/// that nobody knows any more, because it ended with its process before it had a record, is submitted again.
Result<rpc::ListJobsReply> wait_for_job(Connection& connection, const std::string& job, const rpc::JobSpec* spec,
                                        Duration timeout, std::uint32_t results_bytes_max,
                                        const std::function<void(const rpc::JobStatus&)>& on_progress);

/// The results of a job that is done. Errors: as JobResults.
Result<std::vector<mapreduce::KeyedResult>> read_results(Connection& connection, const rpc::JobStatus& job);
/// The same when `reply` may have them already.
Result<std::vector<mapreduce::KeyedResult>> results_of(Connection& connection, rpc::ListJobsReply& reply);

}  // namespace fjord
