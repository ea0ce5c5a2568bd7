#include "maintenance/need.h"

#include <algorithm>
#include <iterator>

namespace fjord::distributor {

namespace {

/// Returns the number of ideal nodes that are down or in maintenance, and not retired: their replicas are missing.
std::size_t ideal_nodes_away(const NodeList& ideal, const rpc::ClusterSnapshot& snapshot) {
  const std::size_t wanted = wanted_replicas(snapshot);
  if (ideal.size() >= wanted) return 0;
  std::size_t away = 0;
  for (const DistributionGroup::Node& node : snapshot.distribution().flat_nodes()) {
    const bool is_away = is_to_stay(snapshot.state(), node.index) && !snapshot.storage_serves(node.index);
    away += is_away ? 1 : 0;
  }
  return std::min(wanted - ideal.size(), away);
}

/// Returns the number of nodes in maintenance that count as holders of a replica: see stand_ins().
std::size_t holders_in_maintenance(const ReplicaSet& newest, BucketId bucket, const rpc::ClusterSnapshot& snapshot) {
  std::size_t named = 0;
  std::size_t others = 0;
  for (const std::uint16_t node : snapshot.places(bucket)) {
    if (snapshot.storage_serves(node)) continue;
    ++(newest.contains(node) ? named : others);
  }
  const std::size_t wanted = wanted_replicas(snapshot);
  const std::size_t missing = newest.nodes.size() < wanted ? wanted - newest.nodes.size() : 0;
  return named + std::min(others, missing);
}

}  // namespace

std::size_t wanted_replicas(const rpc::ClusterSnapshot& snapshot) {
  return replicas_at_birth(snapshot.state(), snapshot.distribution());
}

std::vector<std::uint16_t> wanted_members(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  const NodeList ideal = snapshot.ideal_nodes(entry.bucket);
  std::vector<std::uint16_t> nodes = ideal.to_vector();
  std::vector<std::uint16_t> leaving;
  for (const std::vector<std::uint16_t>* list : {&entry.set.nodes, &entry.catching_up}) {
    std::copy_if(list->begin(), list->end(), std::back_inserter(leaving), [&](auto n) { return !ideal.contains(n); });
  }
  if (leaving.empty()) return nodes;
  leaving.resize(std::min(leaving.size(), ideal_nodes_away(ideal, snapshot)));
  nodes.insert(nodes.end(), leaving.begin(), leaving.end());
  return nodes.empty() ? entry.set.nodes : nodes;
}

std::vector<std::uint16_t> stand_ins(const RecoveryPlan& plan, const ReplicaSet& newest, BucketId bucket,
                                     const rpc::ClusterSnapshot& snapshot) {
  const NodeList ideal = snapshot.ideal_nodes(bucket);
  const std::size_t wanted = ideal.size() + ideal_nodes_away(ideal, snapshot);
  std::size_t replicas = plan.members.size() + plan.catching_up.size();
  std::vector<std::uint16_t> nodes;
  for (auto node = plan.obsolete.begin(); node != plan.obsolete.end() && replicas < wanted; ++node, ++replicas) {
    nodes.push_back(*node);
  }
  replicas += holders_in_maintenance(newest, bucket, snapshot);
  for (const std::uint16_t node : snapshot.nodes_for_new(bucket)) {
    if (replicas >= wanted) break;
    const bool is_one = contains(plan.members, node) || contains(plan.catching_up, node) || contains(nodes, node);
    if (is_one) continue;
    nodes.push_back(node);
    ++replicas;
  }
  return nodes;
}

bool is_misplaced(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  const std::vector<std::uint16_t> wanted = wanted_members(entry, snapshot);
  return std::any_of(entry.set.nodes.begin(), entry.set.nodes.end(),
                     [&](std::uint16_t node) { return std::find(wanted.begin(), wanted.end(), node) == wanted.end(); });
}

Need need_of(const BucketEntry& entry, std::span<const std::uint16_t> wanted) {
  if (!entry.catching_up.empty() && entry.intact().size() < wanted.size()) return Need::Restore;
  if (entry.repairable()) return Need::Repair;
  if (entry.dirty || entry.unsettled) return Need::Sync;
  if (!entry.catching_up.empty() || entry.misplaced) return Need::Move;
  return entry.obsolete.empty() ? Need::None : Need::Delete;
}

unsigned priority_of(const BucketEntry& entry, Need need) {
  if (entry.awaited && is_for_safety(need)) return 0;
  if (need == Need::Restore) return static_cast<unsigned>(std::min<std::size_t>(entry.intact().size(), kMaxRedundancy));
  return kMaxRedundancy + static_cast<unsigned>(need);
}

}  // namespace fjord::distributor
