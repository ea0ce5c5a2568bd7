#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/job_messages.h"

namespace fjord::cli {

/// The passes of a job that begins with `first`: after it one for each of `then`, JSON text that is either an
/// aggregation, as AggregateSpec::from_json() reads it without a type, or
/// {"application": "script", "script": "FILE", "parameters": {"name": "value"}, "selection": "CONDITION"}, of which
/// only the application must be there. `target`: namespace and name of rows that are put as documents. Errors:
/// InvalidArgument that names the member; what compiling an aggregation says; IoError of a script's file.
Result<std::vector<rpc::JobPass>> chained_passes(rpc::JobPass first, const std::vector<std::string>& then,
                                                 const rpc::RowTarget& target,
                                                 const std::shared_ptr<const DocumentTypeRepo>& types);

/// A parameter "script" with the Lua program in that file; - is standard input. Errors: IoError; InvalidArgument (too
/// large).
Result<rpc::Parameter> script_parameter(const std::string& file);

}  // namespace fjord::cli
