#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "fjord/library/aggregate.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/library/jobs.h"
#include "fjord/mapreduce/job_results.h"
#include "fjord/mapreduce/passes.h"

namespace fjord {

/// An aggregation of one or more passes, with the options of its run.
struct AggregateRun {
  mapreduce::AggregateJob job;
  std::string into_namespace;
  std::string name;
  JobShuffle shuffle = JobShuffle::Auto;
  bool incremental = false;
  std::map<std::string, std::string> settings;
  Duration timeout{0};
  std::function<void(const JobInfo&)> on_progress;
  Duration time_limit{0};     ///< After this time the job is cancelled; 0: no limit.
  std::stop_token stop = {};  ///< A stop request cancels the job.
};

/// The result of an aggregation.
struct AggregateEnd {
  JobInfo job;                                                         ///< The ended job: done, failed or cancelled.
  std::vector<std::shared_ptr<const mapreduce::AggregatePlan>> plans;  ///< One for each pass.
  std::vector<mapreduce::KeyedResult> rows;  ///< Rows of a job that is done: ordered, filtered and limited.
};

/// Compiles the aggregation, submits it as a job and waits for its end. A failed job is a value. Errors: those of the
/// request and of the calls; Cancelled after a stop request; Timeout after the time limit.
Result<AggregateEnd> run_aggregate(ClientCore& core, AggregateRun run);
/// Runs an aggregation that is given, and returned, in the public types of the library.
AggregateResult run_aggregate(ClientCore& core, const AggregateRequest& request);

/// Returns the values of result rows. Errors: Corruption.
Result<std::vector<std::vector<Cell>>> cells_of(const mapreduce::AggregatePlan& plan,
                                                std::span<const mapreduce::KeyedResult> rows);

/// Returns the number of an estimate, which is a JSON object {"estimate": ...}; returns any other text unchanged.
std::string estimate_of(std::string_view json);

}  // namespace fjord
