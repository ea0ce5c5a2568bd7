#pragma once

#include <string_view>

#include "cluster_record.h"
#include "fjord/rpc/operator_messages.h"
#include "stop_check.h"

namespace fjord::fleetcontroller {

/// Applies an operator's change of nodes to `record`, or returns the reasons against it. A pure function; `facts` is
/// the controller's knowledge of the nodes, `unix_us` the time.
///
/// The reply's status is an error if the input is wrong (NotFound, InvalidArgument). Refusals are about changes that
/// are possible and unsafe; request.force overrides them. `record` changes only if the status is OK, no refusal is in
/// force, and dry_run is false.
rpc::ChangeNodesReply change_nodes(ClusterRecord& record, const ClusterFacts& facts, const rpc::ChangeNodes& request,
                                   std::int64_t unix_us);

/// Returns true if an operator has ordered this of the node before, and the order is in force or will be. A repeated
/// order, for example because its answer was lost, takes nothing away. `action` is Maintenance or Down.
bool is_ordered(const ClusterRecord& record, const ClusterState& active, NodeId id, rpc::NodeAction action);

/// Returns the name of the leaf group of a storage node; empty: it is in no group.
std::string group_of(const DistributionConfig& distribution, std::uint16_t index);

/// Returns true for host:port with a name or an address as host: nothing else may reach logs, pages and resolvers.
bool is_node_address(std::string_view address);

}  // namespace fjord::fleetcontroller
