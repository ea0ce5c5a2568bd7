#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/job_messages.h"

namespace fjord::cli {

/// Returns the passes of a job: `first`, then one pass for each element of `then`. An element is JSON text, either an
/// aggregation, as AggregateSpec::from_json() reads it without a type, or
/// {"application": "script", "script": "FILE", "parameters": {"name": "value"}, "selection": "CONDITION"}, where only
/// the application is required. `target` has the namespace and name of rows that are stored as documents. Errors:
/// InvalidArgument that names the member; those of compiling an aggregation; IoError of a script's file.
Result<std::vector<rpc::JobPass>> chained_passes(rpc::JobPass first, const std::vector<std::string>& then,
                                                 const rpc::RowTarget& target,
                                                 const std::shared_ptr<const DocumentTypeRepo>& types);

/// Returns a parameter "script" with the Lua program in `file`; - is standard input. Errors: IoError; InvalidArgument
/// if it is too large.
Result<rpc::Parameter> script_parameter(const std::string& file);

}  // namespace fjord::cli
