#pragma once

#include "cluster_record.h"
#include "fjord/rpc/messages.h"
#include "stop_check.h"

namespace fjord::fleetcontroller {

/// Carries an operator's change of nodes out on `record`, or says why not. Pure; `facts` is what is known of the nodes,
/// `unix_us` the time.
///
/// The answer's status is wrong input (NotFound, InvalidArgument); refusals are for what could be done and had better
/// not be, and request.force carries it out all the same. `record` is changed only with an OK status, no refusal in
/// force and without dry_run.
rpc::ChangeNodesReply change_nodes(ClusterRecord& record, const ClusterFacts& facts, const rpc::ChangeNodes& request,
                                   std::int64_t unix_us);

/// The name of the leaf group that a storage node is in; empty: in none.
std::string group_of(const DistributionConfig& distribution, std::uint16_t index);

}  // namespace fjord::fleetcontroller
