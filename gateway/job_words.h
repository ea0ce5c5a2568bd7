#pragma once

#include <memory>

#include "call.h"
#include "fjord/library/jobs.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/rpc/job_messages.h"

/// Requests and answers about jobs, in the words of the client library. Threading: any thread.
namespace fjord::gateway {

/// Errors: InvalidArgument.
Result<JobRequest> request_of(const api::Aggregate& request);
/// Errors: InvalidArgument, with the pass.
Result<JobRequest> request_of(const api::StartJob& request);
/// Returns the plan of an aggregation that was started as a job. Errors: InvalidArgument if the job is another one.
Result<std::shared_ptr<const mapreduce::AggregatePlan>> plan_of(const rpc::JobStatus& job,
                                                                const std::shared_ptr<const DocumentTypeRepo>& types);
api::JobInfo words_of(const JobInfo& info);
api::Cell words_of(const Cell& cell);

}  // namespace fjord::gateway
