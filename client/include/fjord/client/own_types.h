#pragma once

#include <string_view>

#include "fjord/common/status.h"
#include "fjord/rpc/distributor_messages.h"

namespace fjord {

/// Returns true for the types of documents that Fjord itself stores: rpc::builtin_schemas().
bool is_own_type(std::string_view name);

/// Returns OK unless the operation writes a document of one of Fjord's own types. Clients of users read such documents,
/// and jobs and searches write them with clients of their own: a record that a user puts back would bring an ended job
/// to life again. Threading: any thread. Errors: Unauthorized with the id.
Status check_users_write(const rpc::Operation& operation);

}  // namespace fjord
