#pragma once

#include <string>

#include "fjord/library/jobs.h"
#include "http/json_shape.h"
#include "http/json_text.h"

namespace fjord::gateway {

/// Returns the members of an aggregation that it has alone and as a pass of a job.
JsonShape aggregation_shape(AggregateRequest& request);

struct SubmittedJob {
  JobRequest request;
  bool is_detached = true;  ///< False: the request waits for the job.
};

/// Reads the body that submits a job. Errors: InvalidArgument with the member.
Result<SubmittedJob> read_job(const std::string& body);

/// Writes what is known of a job.
void write_job(const JobInfo& job, JsonText& json);

}  // namespace fjord::gateway
