#pragma once

#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "fjord/rpc/operator_messages.h"
#include "stop_check.h"

namespace fjord::fleetcontroller {

/// Returns the replicas that a change from one view to another creates: on nodes that are ideal after it and were not
/// before. Nodes in maintenance receive no replicas. The bytes are estimated from the present content of the storage
/// nodes. The duration is estimated from `bytes_per_s`, the rate at which a node receives replicas beside users'
/// operations.
rpc::MovementPlan plan_movement(const ClusterView& before, const ClusterView& after,
                                const std::vector<NodeFacts>& nodes, std::uint64_t bytes_per_s);

}  // namespace fjord::fleetcontroller
