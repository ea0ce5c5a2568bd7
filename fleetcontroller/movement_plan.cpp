#include "movement_plan.h"

#include <algorithm>
#include <map>

namespace fjord::fleetcontroller {
namespace {

/// Number of distribution bits above which the first 2^kBitsLookedAt buckets are a sample for all.
constexpr unsigned kBitsLookedAt = 16;

/// Returns false for a node in maintenance: it keeps its place, but receives no replicas until it is back.
bool can_receive(const ClusterView& view, std::uint16_t storage_node) {
  return view.node(NodeId::storage(storage_node)).state != NodeState::Maintenance;
}

}  // namespace

rpc::MovementPlan plan_movement(const ClusterView& before, const ClusterView& after,
                                const std::vector<NodeFacts>& nodes, std::uint64_t bytes_per_s) {
  rpc::MovementPlan plan;
  const unsigned bits = std::max(before.bits(), after.bits());
  const unsigned looked_at = std::min(bits, kBitsLookedAt);
  const std::uint64_t factor = std::uint64_t{1} << (bits - looked_at);
  const ClusterView old_view = view_of_places(before);
  const ClusterView new_view = view_of_places(after);
  std::uint64_t replicas = 0;
  std::map<std::uint16_t, std::uint64_t> received;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << looked_at; ++i) {
    const BucketId bucket(bits, i);
    const NodeList old_nodes = old_view.ideal_nodes(bucket);
    std::uint64_t new_replicas = 0;
    for (std::uint16_t node : new_view.ideal_nodes(bucket)) {
      const bool is_there = std::find(old_nodes.begin(), old_nodes.end(), node) != old_nodes.end();
      if (is_there || !can_receive(after, node)) continue;
      ++new_replicas;
      ++received[node];
    }
    replicas += old_nodes.size();
    plan.buckets_moved += new_replicas == 0 ? 0 : factor;
    plan.replicas_moved += new_replicas * factor;
  }
  plan.buckets_total = std::uint64_t{1} << bits;
  std::uint64_t bytes = 0;
  for (const NodeFacts& node : nodes) bytes += node.id.type == NodeType::Storage ? node.bytes : 0;
  replicas *= factor;
  const double bytes_per_replica = replicas == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(replicas);
  plan.bytes = static_cast<std::uint64_t>(bytes_per_replica * static_cast<double>(plan.replicas_moved));
  std::uint64_t most = 0;
  for (const auto& [node, count] : received) most = std::max(most, count * factor);
  const double slowest = bytes_per_replica * static_cast<double>(most) / static_cast<double>(bytes_per_s);
  plan.duration_s = static_cast<std::uint64_t>(slowest) + (plan.bytes == 0 ? 0 : 1);
  if (looked_at < bits) plan.notes.push_back("counted on a part of the buckets");
  return plan;
}

}  // namespace fjord::fleetcontroller
