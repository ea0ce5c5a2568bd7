#include "maintenance/need.h"

#include <algorithm>

#include "context.h"

namespace fjord::distributor {

namespace {

/// Ideal nodes that a bucket has not, because nodes of the distribution that are neither retired nor without capacity
/// are away.
std::size_t ideal_nodes_away(const NodeList& ideal, const rpc::ClusterSnapshot& snapshot) {
  const std::size_t copies = snapshot.distribution().redundancy();
  if (ideal.size() >= copies) return 0;
  std::size_t staying = 0;
  std::size_t away = 0;
  for (const DistributionGroup::Node& node : snapshot.distribution().flat_nodes()) {
    if (!is_to_stay(snapshot.state(), node.index)) continue;
    ++staying;
    away += snapshot.state().is_up({NodeType::Storage, node.index}) ? 0 : 1;
  }
  const std::size_t wanted = std::min(copies, staying);
  return wanted <= ideal.size() ? 0 : std::min(wanted - ideal.size(), away);
}

}  // namespace

std::vector<std::uint16_t> wanted_members(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  const NodeList ideal = snapshot.ideal_nodes(entry.bucket);
  std::vector<std::uint16_t> nodes = ideal.to_vector();
  const auto leaves = [&](std::uint16_t node) { return !ideal.contains(node); };
  if (std::none_of(entry.set.nodes.begin(), entry.set.nodes.end(), leaves)) return nodes;
  std::size_t kept = ideal_nodes_away(ideal, snapshot);
  for (auto node = entry.set.nodes.begin(); node != entry.set.nodes.end() && kept > 0; ++node) {
    if (!leaves(*node)) continue;
    nodes.push_back(*node);
    --kept;
  }
  return nodes;
}

bool is_misplaced(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  const std::vector<std::uint16_t> wanted = wanted_members(entry, snapshot);
  return std::any_of(entry.set.nodes.begin(), entry.set.nodes.end(),
                     [&](std::uint16_t node) { return std::find(wanted.begin(), wanted.end(), node) == wanted.end(); });
}

Need need_of(const BucketEntry& entry, const NodeList& ideal) {
  if (!entry.filling.empty() && entry.intact().size() < ideal.size()) return Need::Restore;
  if (entry.repairable()) return Need::Repair;
  if (entry.dirty || entry.unsettled) return Need::Sync;
  if (!entry.filling.empty() || entry.misplaced) return Need::Move;
  return entry.stale.empty() ? Need::None : Need::Delete;
}

unsigned priority_of(const BucketEntry& entry, Need need) {
  if (need == Need::Restore) return static_cast<unsigned>(std::min<std::size_t>(entry.intact().size(), kMaxRedundancy));
  return kMaxRedundancy + static_cast<unsigned>(need);
}

}  // namespace fjord::distributor
