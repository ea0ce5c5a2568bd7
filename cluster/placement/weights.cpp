#include "placement/weights.h"

namespace fjord {

GroupWeight weight_of_group(std::uint32_t group, const ClusterState& state,
                            std::span<const DistributionConfig::FlatGroup> groups,
                            std::span<const DistributionGroup::Node> nodes) {
  const DistributionConfig::FlatGroup& flat = groups[group];
  GroupWeight sum;
  if (flat.capacity == 0.0) return sum;
  if (flat.is_leaf) {
    for (const DistributionGroup::Node& node : nodes.subspan(flat.first_node, flat.node_end - flat.first_node)) {
      const NodeStateInfo& info = state.node(NodeId::storage(node.index));
      const std::uint64_t weight = weight_of_node(node, info);
      sum.weight += weight;
      if (weight > 0 && is_available_for_placement(info)) ++sum.available;
    }
  } else {
    for (std::uint32_t child = group + 1; child < flat.group_end; child = groups[child].group_end) {
      const GroupWeight part = weight_of_group(child, state, groups, nodes);
      sum.weight += part.weight;
      sum.available += part.available;
    }
  }
  if (flat.capacity != 1.0) sum.weight = straw2::multiply_weights(sum.weight, straw2::weight_of(flat.capacity));
  sum.weight = std::clamp<std::uint64_t>(sum.weight, 1, straw2::kWeightMax);
  return sum;
}

}  // namespace fjord
