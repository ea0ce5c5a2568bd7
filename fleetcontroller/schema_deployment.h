#pragma once

#include <string>
#include <vector>

#include "cluster_record.h"
#include "fjord/rpc/messages.h"

namespace fjord::fleetcontroller {

/// Returns the schemas that are in force after a deployment: `before` with those of `request`, of which one replaces a
/// schema of the same name. Their version is that of `before` if nothing changes. Adds to `warnings`. A pure function.
///
/// Errors: InvalidArgument if a schema does not parse or does not fit the others; those of check_schema_change() if
/// stored documents would not be readable any more, or if something that was dropped comes back as something else.
Result<SchemaRecord> deploy_schemas(const SchemaRecord& before, const rpc::DeploySchemas& request,
                                    std::vector<std::string>& warnings);

}  // namespace fjord::fleetcontroller
