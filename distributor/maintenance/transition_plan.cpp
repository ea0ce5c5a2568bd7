#include "maintenance/transition_plan.h"

#include <algorithm>

#include "maintenance/need.h"

namespace fjord::distributor {
namespace {

bool same_distributors(const ClusterState& a, const ClusterState& b) {
  const std::uint16_t count = std::max(a.node_count(NodeType::Distributor), b.node_count(NodeType::Distributor));
  for (std::uint16_t i = 0; i < count; ++i) {
    const NodeStateInfo& before = a.node(NodeId::distributor(i));
    const NodeStateInfo& now = b.node(NodeId::distributor(i));
    if (before.state != now.state || before.up_since_version != now.up_since_version) return false;
  }
  return true;
}

/// Returns true if the node was away between the two states, or has restarted.
bool has_restarted(std::uint16_t node, const rpc::ClusterSnapshot& before, const rpc::ClusterSnapshot& now) {
  return !before.storage_serves(node) ||
         now.state().node(NodeId::storage(node)).up_since_version > before.state_version();
}

/// Returns true if a storage node lost the mark of lost data. Buckets that waited for its data may be served now.
bool is_loss_over(const rpc::ClusterSnapshot& before, const rpc::ClusterSnapshot& now) {
  const auto& nodes = now.distribution().flat_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const DistributionGroup::Node& node) {
    return before.state().has_lost_data(node.index) && !now.state().has_lost_data(node.index);
  });
}

}  // namespace

TransitionPlan plan_transition(const rpc::ClusterSnapshot* before, const rpc::ClusterSnapshot& now,
                               const TransitionPlan* unfinished) {
  TransitionPlan plan;
  plan.forget_all = before == nullptr || before->state_version() != now.state().follows() ||
                    before->distribution_bits() != now.distribution_bits();
  plan.ask_for_everything = plan.forget_all || unfinished != nullptr ||
                            !same_distributors(before->state(), now.state()) || is_loss_over(*before, now);
  for (const DistributionGroup::Node& node : now.distribution().flat_nodes()) {
    if (!now.storage_serves(node.index)) continue;
    const bool was_not_heard = unfinished != nullptr && unfinished->restarted.contains(node.index);
    if (plan.forget_all || was_not_heard || has_restarted(node.index, *before, now)) plan.restarted.insert(node.index);
  }
  return plan;
}

bool is_affected(const BucketEntry& entry, const rpc::ClusterSnapshot& before, const rpc::ClusterSnapshot& now) {
  if (!entry.is_settled()) return true;
  for (std::uint16_t node : entry.set.nodes) {
    if (!now.storage_serves(node) || has_restarted(node, before, now)) return true;
  }
  return !same_nodes(entry.set.nodes, wanted_members(entry, now));
}

}  // namespace fjord::distributor
