#include "fjord/cluster/cluster_view.h"

#include <algorithm>

namespace fjord {
namespace {

constexpr std::uint8_t kUnknownSize = 0xff;
constexpr std::uint32_t kUnknownOwner = 0xffffffff;
constexpr std::uint32_t kNoOwner = 0xfffffffe;

}  // namespace

bool is_to_stay(const ClusterState& state, std::uint16_t storage_node) {
  const NodeStateInfo& info = state.node(NodeId::storage(storage_node));
  return info.state != NodeState::Retired && info.capacity > 0.0;
}

namespace {

/// Returns `state`, with all nodes of the distribution that are in state `from` changed to Up.
ClusterState with_all_up(ClusterState state, const DistributionConfig& distribution, NodeState from) {
  for (const DistributionGroup::Node& node : distribution.flat_nodes()) {
    const NodeId id = NodeId::storage(node.index);
    if (state.node(id).state == from) state.set_node_state(id, NodeState::Up);
  }
  return state;
}

/// Returns true if no node of the distribution takes replicas, so that the replicas of retired nodes cannot move
/// anywhere.
bool is_nowhere_to_go(const ClusterState& state, const DistributionConfig& distribution) {
  const auto& all = distribution.flat_nodes();
  return std::none_of(all.begin(), all.end(), [&](const auto& node) {
    return node.capacity > 0.0 && is_available_for_placement(state.node(NodeId::storage(node.index)));
  });
}

ClusterState with_retired_if_alone(ClusterState state, const DistributionConfig& distribution) {
  if (!is_nowhere_to_go(state, distribution)) return state;
  return with_all_up(std::move(state), distribution, NodeState::Retired);
}

}  // namespace

ClusterState state_of_places(const ClusterState& state, const DistributionConfig& distribution) {
  return with_retired_if_alone(with_all_up(state, distribution, NodeState::Maintenance), distribution);
}

ClusterState state_for_new_buckets(const ClusterState& state, const DistributionConfig& distribution) {
  return with_retired_if_alone(state, distribution);
}

unsigned replicas_at_birth(const ClusterState& state, const DistributionConfig& distribution) {
  const auto& all = distribution.flat_nodes();
  const auto is_in = [&](const auto& node, NodeState wanted) {
    return state.node(NodeId::storage(node.index)).state == wanted;
  };
  const bool is_maintenance =
      std::any_of(all.begin(), all.end(), [&](const auto& node) { return is_in(node, NodeState::Maintenance); });
  const bool keeps_retired = !is_maintenance && is_nowhere_to_go(state, distribution);
  const auto staying = std::count_if(all.begin(), all.end(), [&](const auto& node) {
    return is_to_stay(state, node.index) || (keeps_retired && is_in(node, NodeState::Retired));
  });
  return std::min(distribution.redundancy(), std::max(1U, static_cast<unsigned>(staying)));
}

PlacementCache::PlacementCache(ClusterView view) : PlacementCache(std::move(view), placement_algorithm()) {}

PlacementCache::PlacementCache(ClusterView view, const PlacementAlgorithm& algorithm)
    : view_(std::move(view)), algorithm_(algorithm), is_cached_(view_.bits() <= kMaxCachedBits) {}

NodeList PlacementCache::ideal_nodes(BucketId bucket) {
  if (map_ == nullptr) map_ = algorithm_.prepare(view_.state, view_.distribution);
  if (!is_cached_) return map_->ideal_nodes(bucket);
  const std::size_t redundancy = view_.redundancy();
  if (sizes_.empty()) {
    sizes_.assign(std::size_t{1} << view_.bits(), kUnknownSize);
    nodes_.resize(sizes_.size() * redundancy);
  }
  const std::size_t key = placement_key(bucket, view_.bits());
  const auto begin = nodes_.begin() + static_cast<std::ptrdiff_t>(key * redundancy);
  if (sizes_[key] == kUnknownSize) {
    const NodeList list = map_->ideal_nodes(bucket);
    FJORD_CHECK(list.size() <= redundancy);
    std::copy(list.begin(), list.end(), begin);
    sizes_[key] = static_cast<std::uint8_t>(list.size());
    return list;
  }
  return NodeList(std::span<const std::uint16_t>(begin, sizes_[key]));
}

std::optional<std::uint16_t> PlacementCache::owner(BucketId bucket) {
  if (!is_cached_) return view_.owner(bucket);
  if (owners_.empty()) owners_.assign(std::size_t{1} << view_.bits(), kUnknownOwner);
  std::uint32_t& owner = owners_[placement_key(bucket, view_.bits())];
  if (owner == kUnknownOwner) {
    const std::optional<std::uint16_t> found = view_.owner(bucket);
    owner = found ? *found : kNoOwner;
  }
  if (owner == kNoOwner) return std::nullopt;
  return static_cast<std::uint16_t>(owner);
}

}  // namespace fjord
