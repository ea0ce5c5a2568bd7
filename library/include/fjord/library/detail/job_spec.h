#pragma once

#include <memory>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/library/jobs.h"
#include "fjord/rpc/job_messages.h"

namespace fjord {

/// Returns the message that submits the job. Compiles its aggregations, each against the rows of the pass before it.
/// Errors: InvalidArgument if there is no pass or an aggregation after the first pass has a type; those of compiling an
/// aggregation; the message names the pass if there are several.
Result<rpc::JobSpec> job_spec_of(const JobRequest& request, const std::shared_ptr<const DocumentTypeRepo>& types);

/// Returns what a distributor reports about a job.
JobInfo job_info_of(const rpc::JobStatus& job);

}  // namespace fjord
