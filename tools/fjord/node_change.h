#pragma once

#include "fjord/client/connect.h"

namespace fjord::cli {

/// Asks the cluster for a change of its nodes. Each attempt says what it has seen of the cluster, so that one that is
/// late does nothing; when something happens to the cluster meanwhile, it is tried again.
///
/// Errors: those of the call, and what the fleet controller says. Its refusals are in the answer.
Result<rpc::ChangeNodesReply> change_nodes(Connection& connection, rpc::ChangeNodes request, Duration timeout);

}  // namespace fjord::cli
