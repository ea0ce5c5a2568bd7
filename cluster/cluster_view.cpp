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

unsigned replicas_at_birth(const ClusterState& state, const DistributionConfig& distribution) {
  const auto& all = distribution.flat_nodes();
  const auto staying =
      std::count_if(all.begin(), all.end(), [&](const auto& node) { return is_to_stay(state, node.index); });
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
