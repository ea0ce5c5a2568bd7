#include "publication.h"

#include <algorithm>

#include "state_generator.h"

namespace fjord::fleetcontroller {
namespace {

bool may_serve(NodeState state) { return is_available(state) || state == NodeState::Initializing; }

}  // namespace

std::string why_not_yet(const ClusterState& active, const ClusterState& pending, const std::vector<NodeProgress>& nodes,
                        MonotonicTime pending_since, const PublicationLimits& limits, MonotonicTime now) {
  std::string missing;
  for (const NodeProgress& node : nodes) {
    if (!may_serve(active.node(node.id).state)) continue;
    if (node.prepared_version >= pending.version()) continue;
    if (now - node.last_heard > limits.lease) continue;
    const bool is_taken_down = !may_serve(pending.node(node.id).state);
    if (is_taken_down && node.is_gone && node.id.type == NodeType::Storage) continue;
    // If the node is gone, its last answer is older than `pending_since`, so its lease is over by then.
    if (is_taken_down && now - pending_since > std::max(limits.pending_max, limits.lease)) continue;
    missing += (missing.empty() ? "waits for " : ", ") + node.id.to_string();
  }
  return missing;
}

}  // namespace fjord::fleetcontroller
