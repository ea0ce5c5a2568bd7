#include "maintenance_checker.h"

#include <algorithm>
#include <fmt/format.h>

namespace fjord::sim {
namespace {

bool overlap(BucketId a, BucketId b) { return a.contains(b) || b.contains(a); }

std::optional<std::uint16_t> node_in_maintenance(const ClusterState& state) {
  for (std::uint16_t i = 0; i < state.node_count(NodeType::Storage); ++i) {
    if (state.node(NodeId::storage(i)).state == NodeState::Maintenance) return i;
  }
  return std::nullopt;
}

/// Returns the state with the node down and without its number of assured replicas.
ClusterState without(ClusterState state, std::uint16_t node) {
  NodeStateInfo down;
  down.state = NodeState::Down;
  state.set_node(NodeId::storage(node), down);
  state.set_replicas_assured(0);
  return state;
}

}  // namespace

void MaintenanceChecker::see_state(std::uint64_t version, const std::string& state, const std::string& distribution) {
  if (states_.contains(version) || distribution.empty()) return;
  Result<ClusterState> parsed = ClusterState::parse(state);
  Result<DistributionConfig> groups = DistributionConfig::parse(distribution);
  if (parsed && groups) states_.emplace(version, ClusterView::make(std::move(*parsed), std::move(*groups)));
}

std::optional<MaintenanceChecker::Away> MaintenanceChecker::only_away(std::uint64_t version) const {
  auto at = states_.find(version);
  if (at == states_.end()) return std::nullopt;
  const ClusterView& now = at->second;
  const std::optional<std::uint16_t> node = node_in_maintenance(*now.state);
  if (!node) return std::nullopt;
  while (node_in_maintenance(*at->second.state) == node) {
    if (at == states_.begin()) return std::nullopt;
    --at;
  }
  const ClusterView& before = at->second;
  const bool is_only_change = before.is_up(NodeId::storage(*node)) &&
                              without(*before.state, *node).is_similar(without(*now.state, *node)) &&
                              before.distribution->to_string() == now.distribution->to_string();
  if (!is_only_change) return std::nullopt;
  const auto& nodes = now.distribution->flat_nodes();
  const bool all_there = std::all_of(nodes.begin(), nodes.end(), [&](const DistributionGroup::Node& other) {
    return other.index == *node || now.is_up(NodeId::storage(other.index));
  });
  if (!all_there) return std::nullopt;
  ClusterState places = *now.state;
  places.set_node_state(NodeId::storage(*node), NodeState::Up);
  return Away{*node, ClusterView::make(std::move(places), *now.distribution)};
}

void MaintenanceChecker::see_sets(const std::string& to, const rpc::SetReplicaSets& request) {
  const auto index = static_cast<std::uint16_t>(NodeId::parse(to)->index);
  for (const rpc::BucketReplicaSet& told : request.buckets) {
    if (told.replica_set.epoch == 0) check_filling(to, request.state_version, told.bucket);
    ReplicaSet& last = told_[index][told.bucket.raw()];
    if (told.replica_set.epoch >= last.epoch) last = told.replica_set;
  }
}

void MaintenanceChecker::see_delete(const std::string& to, const rpc::DeleteBuckets& request) {
  auto& sets = told_[static_cast<std::uint16_t>(NodeId::parse(to)->index)];
  for (const BucketId bucket : request.buckets) sets.erase(bucket.raw());
}

void MaintenanceChecker::check_filling(const std::string& to, std::uint64_t version, BucketId bucket) {
  if (cluster_ == nullptr || !failure_.empty()) return;
  const std::optional<Away> away = only_away(version);
  if (!away || !was_member(away->node, bucket)) return;
  exposure_.note(12);
  const NodeList places = away->places.ideal_nodes(bucket);
  const auto index = static_cast<std::uint16_t>(NodeId::parse(to)->index);
  if (!places.contains(away->node) || places.contains(index) || holds_some(to, bucket)) return;
  failure_ = fmt::format("I12: {} gets a replica of {} in state {} because storage.{} is in maintenance", to,
                         bucket.to_string(), version, away->node);
}

bool MaintenanceChecker::was_member(std::uint16_t node, BucketId bucket) const {
  const auto sets = told_.find(node);
  if (sets == told_.end()) return false;
  return std::any_of(sets->second.begin(), sets->second.end(), [&](const auto& told) {
    return overlap(BucketId(told.first), bucket) && told.second.contains(node);
  });
}

bool MaintenanceChecker::holds_some(const std::string& name, BucketId bucket) const {
  const auto sets = cluster_->sets_of(name);
  return std::any_of(sets.begin(), sets.end(), [&](const auto& held) { return overlap(held.first, bucket); });
}

}  // namespace fjord::sim
