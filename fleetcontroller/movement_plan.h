#pragma once

#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "fjord/rpc/messages.h"
#include "stop_check.h"

namespace fjord::fleetcontroller {

/// What the change from one view to another moves: the replicas that are ideal after it and were not before. Bytes are
/// estimated from what the storage nodes hold now, the time from what a receiving node takes in: `rate_max` bytes a
/// second (what maintenance may move) or kMoveBytesPerSecond, whichever is less.
rpc::MovementPlan plan_movement(const ClusterView& before, const ClusterView& after,
                                const std::vector<NodeFacts>& nodes, std::uint64_t rate_max);

/// What one storage node takes in beside user traffic; from docs/experiments/elasticity.md, rounded.
inline constexpr std::uint64_t kMoveBytesPerSecond = std::uint64_t{20} << 20;

}  // namespace fjord::fleetcontroller
