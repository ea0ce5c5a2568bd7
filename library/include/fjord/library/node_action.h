#pragma once

#include <string_view>

#include "fjord/common/result.h"
#include "fjord/library/cluster_status.h"

namespace fjord {

/// Returns the action with a name that the clients of all languages use: "retire", "stop_check". Errors:
/// InvalidArgument that lists the names.
Result<NodeAction> node_action_of(std::string_view name);

}  // namespace fjord
