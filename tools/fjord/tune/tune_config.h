#pragma once

#include <string>

#include "fjord/client/connect.h"

/// Changes of the live configuration that do not overwrite concurrent changes.
namespace fjord::cli {

/// Makes a change if the version of the configuration is still `seen`, and returns the new version. After Timeout it
/// checks whether the change was made.
/// Errors: Busy if the configuration has been changed since `seen`; those of the call.
Result<std::uint64_t> change_if_unchanged(Connection& connection, Duration timeout, rpc::ChangeConfig request,
                                          std::uint64_t seen);

}  // namespace fjord::cli
