#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// The progress of one node in following published states.
struct NodeProgress {
  NodeId id;
  std::uint64_t prepared_version = 0;  ///< Highest state, pending or active, that the node has acknowledged.
  MonotonicTime last_heard;            ///< Time of its last answer or of the controller's election, the later one.
  bool is_gone = false;                ///< As NodeReport::is_gone.
};

struct PublicationLimits {
  Duration lease{};
  Duration pending_max{};
};

/// Returns the nodes for which a pending state still waits; empty: it may become active. A pure function.
///
/// The state waits for each node that is up in the active state, until that node has acknowledged it or was silent for
/// longer than the lease, because a distributor without a lease serves no read on its own. It does not wait for a
/// storage node that is gone and is taken down, because storage nodes have no lease. It does wait for a distributor
/// that refuses connections, because a firewall on the way may have refused them. For a node that answers without an
/// acknowledgement the wait ends after `pending_max` if the pending state takes that node down
/// (docs/design/0005-cluster-that-changes.md).
std::string why_not_yet(const ClusterState& active, const ClusterState& pending, const std::vector<NodeProgress>& nodes,
                        MonotonicTime pending_since, const PublicationLimits& limits, MonotonicTime now);

}  // namespace fjord::fleetcontroller
