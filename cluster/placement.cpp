#include "fjord/cluster/placement.h"

#include <optional>
#include <utility>

#include "placement/exceptions.h"
#include "placement/maps.h"
#include "placement/weights.h"
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

  /// Returns up to `count` distinct available nodes of the group; all of them if there are fewer.
  NodeList select(std::uint32_t group, std::size_t count) const {
    return groups_[group].is_leaf ? select_nodes(groups_[group], count) : select_in_groups(group, count);
  }

 private:
  NodeList select_nodes(const DistributionConfig::FlatGroup& group, std::size_t count) const {
    straw2::Ranking ranking(count);
    for (std::uint32_t at = group.first_node; at < group.node_end; ++at) {
      const std::uint16_t index = nodes_[at].index;
      const NodeStateInfo& info = state_.node(NodeId::storage(index));
      if (!is_available_for_placement(info)) continue;
      const std::uint64_t weight = weight_of_node(nodes_[at], info);
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
      const GroupWeight part = weight_of_group(child, state_, groups_, nodes_);
      if (part.available == 0) continue;
      const std::uint64_t id = groups_[child].id;
      ranking.add({straw2::cost_of_hash(straw2::hash_of_child(seed_, id)), part.weight, id, child, part.available});
    }
    const ReplicaShares shares(ranking.size(), count, [&](std::size_t rank) { return ranking[rank].available; });
    std::array<NodeList, kMaxRedundancy> parts;
    for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
      if (shares[rank] > 0) parts[rank] = select(ranking[rank].position, shares[rank]);
    }
    NodeList list;
    for (std::size_t turn = 0; list.size() < shares.sum(); ++turn) {
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
  const std::uint64_t key = placement_key(bucket, state.bits());
  const NodeList list = Selector(key, state, distribution).select(0, distribution.redundancy());
  return with_exceptions(list, key, state, distribution);
}

std::shared_ptr<const PlacementMap> Straw2Placement::prepare(
    std::shared_ptr<const ClusterState> state, std::shared_ptr<const DistributionConfig> distribution) const {
  return make_tree_map(std::move(state), std::move(distribution), PlacementSettings());
}

namespace {

/// Returns a shared_ptr that keeps nothing alive, for a map that is used during one call only.
template <typename T>
std::shared_ptr<const T> borrowed(const T& value) {
  return {std::shared_ptr<const T>(), &value};
}

class UnpreparedMap final : public PlacementMap {
 public:
  UnpreparedMap(const PlacementAlgorithm& algorithm, StatePointer state, DistributionPointer distribution)
      : algorithm_(algorithm), state_(std::move(state)), distribution_(std::move(distribution)) {}
  NodeList ideal_nodes(BucketId bucket) const override {
    return algorithm_.ideal_nodes(bucket, *state_, *distribution_);
  }

 private:
  const PlacementAlgorithm& algorithm_;
  StatePointer state_;
  DistributionPointer distribution_;
};

/// Uses one given algorithm on all levels; if none is given, the distribution's settings.
class SettingsPlacement final : public PlacementAlgorithm {
 public:
  SettingsPlacement() = default;
  explicit SettingsPlacement(PlacementKind kind) : kind_(kind) {}

  NodeList ideal_nodes(BucketId bucket, const ClusterState& state,
                       const DistributionConfig& distribution) const override {
    if (is_plain_straw2(distribution)) return Straw2Placement().ideal_nodes(bucket, state, distribution);
    return prepare(borrowed(state), borrowed(distribution))->ideal_nodes(bucket);
  }

  std::shared_ptr<const PlacementMap> prepare(std::shared_ptr<const ClusterState> state,
                                              std::shared_ptr<const DistributionConfig> distribution) const override {
    PlacementSettings settings = distribution->placement();
    if (kind_) {
      settings.levels = {*kind_};
      settings.rule.clear();
    }
    switch (settings.kind()) {
      case PlacementKind::Rush:
        return make_rush_map(std::move(state), std::move(distribution));
      case PlacementKind::Modulo:
        return make_modulo_map(std::move(state), std::move(distribution));
      case PlacementKind::Consistent:
        return make_consistent_map(std::move(state), std::move(distribution), settings.tokens_per_node);
      case PlacementKind::Rendezvous:
        return make_rendezvous_map(std::move(state), std::move(distribution));
      default:
        return make_tree_map(std::move(state), std::move(distribution), settings);
    }
  }

 private:
  bool is_plain_straw2(const DistributionConfig& distribution) const {
    if (kind_) return kind_ == PlacementKind::Straw2;
    const PlacementSettings& settings = distribution.placement();
    return settings.rule.empty() && settings.levels.size() == 1 && settings.kind() == PlacementKind::Straw2;
  }

  std::optional<PlacementKind> kind_;
};

}  // namespace

std::shared_ptr<const PlacementMap> PlacementAlgorithm::prepare(
    std::shared_ptr<const ClusterState> state, std::shared_ptr<const DistributionConfig> distribution) const {
  return std::make_shared<const UnpreparedMap>(*this, std::move(state), std::move(distribution));
}

const PlacementAlgorithm& placement_algorithm() {
  static const SettingsPlacement kAlgorithm;
  return kAlgorithm;
}

const PlacementAlgorithm& placement_algorithm(PlacementKind kind) {
  static const std::array<SettingsPlacement, kPlacementKinds.size()> kAlgorithms = [] {
    std::array<SettingsPlacement, kPlacementKinds.size()> all;
    for (const PlacementKind one : kPlacementKinds) all[static_cast<std::size_t>(one)] = SettingsPlacement(one);
    return all;
  }();
  return kAlgorithms[static_cast<std::size_t>(kind)];
}

}  // namespace fjord
