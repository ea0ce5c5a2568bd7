#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fjord/library/aggregate.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/mapreduce/job_results.h"
#include "fjord/mapreduce/passes.h"

namespace fjord {

/// An aggregation of one or more passes, and how it is run.
struct AggregateRun {
  mapreduce::AggregateJob job;
  std::string into_namespace;
  std::string name;
  rpc::Shuffle shuffle = rpc::Shuffle::Auto;
  bool incremental = false;
  std::vector<rpc::Parameter> settings;
  Duration timeout{0};
  std::function<void(const rpc::JobStatus&)> on_progress;
};

/// Where an aggregation has ended.
struct AggregateEnd {
  std::string job_id;
  rpc::JobStatus job;                                                  ///< Of the end; done, failed or cancelled.
  std::vector<std::shared_ptr<const mapreduce::AggregatePlan>> plans;  ///< One for each pass.
  std::vector<mapreduce::KeyedResult> rows;                            ///< Of a job that is done, arranged.
};

/// Compiles, submits and waits. A job that failed is a value; errors of the result are those of the request and of the
/// calls.
Result<AggregateEnd> run_aggregate(ClientCore& core, AggregateRun run);
/// The same with the values of the library.
AggregateResult run_aggregate(ClientCore& core, const AggregateRequest& request);

/// A number of an estimate, which is an object that says how exact it is; other texts as they are.
std::string estimate_of(std::string_view json);

}  // namespace fjord
