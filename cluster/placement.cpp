#include "fjord/cluster/placement.h"

#include "straw2.h"

namespace fjord {
namespace {

class Selector {
 public:
  Selector(std::uint64_t key, const ClusterState& state, const DistributionConfig& distribution)
      : seed_(straw2::seed_of_key(key)),
        state_(state),
        groups_(distribution.flat_groups()),
        nodes_(distribution.flat_nodes()) {}

  /// Up to `count` distinct available nodes of the group; all of them if there are fewer.
  NodeList select(std::uint32_t group, std::size_t count) const {
    return groups_[group].is_leaf ? select_nodes(groups_[group], count) : select_in_groups(group, count);
  }

 private:
  struct Below {
    std::uint64_t weight = 0;
    std::uint32_t available = 0;
  };

  static std::uint64_t weight_of(const DistributionGroup::Node& node, const NodeStateInfo& info) {
    if (node.capacity == 1.0 && info.capacity == 1.0) return straw2::kWeightOne;
    return straw2::weight_of(node.capacity * info.capacity);
  }

  /// The weight and the number of available nodes of a group.
  Below below(std::uint32_t group) const {
    const DistributionConfig::FlatGroup& flat = groups_[group];
    Below sum;
    if (flat.capacity == 0.0) return sum;
    if (flat.is_leaf) {
      for (const DistributionGroup::Node& node : nodes_.subspan(flat.first_node, flat.node_end - flat.first_node)) {
        const NodeStateInfo& info = state_.node(NodeId::storage(node.index));
        const std::uint64_t weight = weight_of(node, info);
        sum.weight += weight;
        if (weight > 0 && is_available_for_placement(info)) ++sum.available;
      }
    } else {
      for (std::uint32_t child = group + 1; child < flat.group_end; child = groups_[child].group_end) {
        const Below part = below(child);
        sum.weight += part.weight;
        sum.available += part.available;
      }
    }
    if (flat.capacity != 1.0) sum.weight = straw2::multiply_weights(sum.weight, straw2::weight_of(flat.capacity));
    sum.weight = std::clamp<std::uint64_t>(sum.weight, 1, straw2::kWeightMax);
    return sum;
  }

  NodeList select_nodes(const DistributionConfig::FlatGroup& group, std::size_t count) const {
    straw2::Ranking ranking(count);
    for (std::uint32_t at = group.first_node; at < group.node_end; ++at) {
      const std::uint16_t index = nodes_[at].index;
      const NodeStateInfo& info = state_.node(NodeId::storage(index));
      if (!is_available_for_placement(info)) continue;
      const std::uint64_t weight = weight_of(nodes_[at], info);
      if (weight == 0) continue;
      ranking.add({straw2::cost_of_hash(straw2::hash_of_child(seed_, index)), weight, index, at, 1});
    }
    NodeList list;
    for (std::size_t rank = 0; rank < ranking.size(); ++rank)
      list.push_back(static_cast<std::uint16_t>(ranking[rank].id));
    return list;
  }

  NodeList select_in_groups(std::uint32_t group, std::size_t count) const {
    straw2::Ranking ranking(count);
    for (std::uint32_t child = group + 1; child < groups_[group].group_end; child = groups_[child].group_end) {
      const Below part = below(child);
      if (part.available == 0) continue;
      const std::uint64_t id = groups_[child].id;
      ranking.add({straw2::cost_of_hash(straw2::hash_of_child(seed_, id)), part.weight, id, child, part.available});
    }
    // As many replicas a child as rounds in which it has room. With fewer children than replicas all of them are
    // ranked, so the rounds end only when there are enough replicas or no available node is left.
    std::array<std::size_t, kMaxRedundancy> shares{};
    std::size_t given = 0;
    for (bool has_room = true; has_room && given < count;) {
      has_room = false;
      for (std::size_t rank = 0; rank < ranking.size() && given < count; ++rank) {
        if (shares[rank] == ranking[rank].available) continue;
        ++shares[rank];
        ++given;
        has_room = true;
      }
    }
    std::array<NodeList, kMaxRedundancy> parts;
    for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
      if (shares[rank] > 0) parts[rank] = select(ranking[rank].position, shares[rank]);
    }
    NodeList list;
    for (std::size_t turn = 0; list.size() < given; ++turn) {
      for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
        if (turn < parts[rank].size()) list.push_back(parts[rank][turn]);
      }
    }
    return list;
  }

  std::uint64_t seed_;
  const ClusterState& state_;
  std::span<const DistributionConfig::FlatGroup> groups_;
  std::span<const DistributionGroup::Node> nodes_;
};

}  // namespace

std::uint64_t placement_key(BucketId bucket, unsigned bits) {
  const unsigned used = std::min<unsigned>(bits, static_cast<unsigned>(bucket.used_bits()));
  return bucket.raw() & ((std::uint64_t{1} << used) - 1);
}

NodeList Straw2Placement::ideal_nodes(BucketId bucket, const ClusterState& state,
                                      const DistributionConfig& distribution) const {
  return Selector(placement_key(bucket, state.bits()), state, distribution).select(0, distribution.redundancy());
}

}  // namespace fjord
