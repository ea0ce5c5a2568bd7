#pragma once

#include <string>

#include "fjord/client/connect.h"

/// Changes of the live configuration that give way to those of others.
namespace fjord::cli {

/// Makes a change if the version is still `seen`; returns the version that it made.
/// Errors: Busy if somebody else has changed the configuration; those of the call. After Timeout it asks whether the
/// change was made.
Result<std::uint64_t> change_if_unchanged(Connection& connection, Duration timeout, rpc::ChangeConfig request,
                                          std::uint64_t seen);

}  // namespace fjord::cli
