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

/// Returns the run that a request asks for. Errors: InvalidArgument if it has no type.
Result<AggregateRun> run_of(const AggregateRequest& request);
/// Compiles the aggregation, submits it as a job and waits for its end. A failed job is a value. Errors: those of the
/// request and of the calls; Cancelled after a stop request; Timeout after the time limit.
Result<AggregateEnd> run_aggregate(ClientCore& core, AggregateRun run);
/// Runs an aggregation that is given, and returned, in the public types of the library.
AggregateResult run_aggregate(ClientCore& core, const AggregateRequest& request);

/// Returns OK if the job is done, else why it is not.
Status status_of(const JobInfo& job);

/// Returns the values of result rows. Errors: Corruption.
Result<std::vector<std::vector<Cell>>> cells_of(const mapreduce::AggregatePlan& plan,
                                                std::span<const mapreduce::KeyedResult> rows);
/// Sets names and types of the columns.
void set_columns(const mapreduce::AggregatePlan& plan, AggregateResult& result);
/// Calls `f(cells)` with the JSON of each cell of each row, in which an estimate is its number, until it returns false.
/// Errors: Corruption.
Status for_each_row(const AggregateEnd& end, const std::function<bool(std::span<const std::string>)>& f);

/// Returns the header of the rows as CSV, and one row of it: no value is an empty cell, an empty text is "".
std::string csv_header(const mapreduce::AggregatePlan& plan);
std::string csv_row(std::span<const std::string> cells);

/// Returns the number of an estimate, which is a JSON object {"estimate": ...}; returns any other text unchanged.
std::string estimate_of(std::string_view json);

}  // namespace fjord
