#pragma once

#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "fjord/rpc/messages.h"
#include "stop_check.h"

namespace fjord::fleetcontroller {

/// What the change from one view to another moves: the replicas that are ideal after it and were not before, without
/// those of nodes in maintenance, to which nothing is copied. Bytes are estimated from what the storage nodes hold now,
/// the time from `bytes_per_s`, what a receiving node takes in while users' operations come.
rpc::MovementPlan plan_movement(const ClusterView& before, const ClusterView& after,
                                const std::vector<NodeFacts>& nodes, std::uint64_t bytes_per_s);

}  // namespace fjord::fleetcontroller
