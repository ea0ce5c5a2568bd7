#include "placement/exceptions.h"

#include <optional>

#include "placement/weights.h"

namespace fjord {
namespace {

/// Returns the position of a node in flat_nodes(); nothing if the node is not configured.
std::optional<std::size_t> position_of(std::uint16_t index, const DistributionConfig& distribution) {
  const std::span<const DistributionGroup::Node> nodes = distribution.flat_nodes();
  for (std::size_t position = 0; position < nodes.size(); ++position) {
    if (nodes[position].index == index) return position;
  }
  return std::nullopt;
}

/// Returns the number of groups that contain both nodes.
unsigned shared_groups(std::size_t a, std::size_t b, const DistributionConfig& distribution) {
  unsigned count = 0;
  const std::span<const DistributionConfig::FlatGroup> groups = distribution.flat_groups();
  for (std::size_t group = 0; group < groups.size();) {
    const auto holds = [&](std::size_t node) {
      return groups[group].first_node <= node && node < groups[group].node_end;
    };
    if (holds(a) && holds(b)) {
      ++count;
      ++group;
    } else {
      group = groups[group].group_end;
    }
  }
  return count;
}

bool has_capacity(std::size_t position, const DistributionConfig& distribution) {
  if (distribution.flat_nodes()[position].capacity == 0.0) return false;
  for (const DistributionConfig::FlatGroup& group : distribution.flat_groups()) {
    if (group.capacity == 0.0 && group.first_node <= position && position < group.node_end) return false;
  }
  return true;
}

}  // namespace

bool exception_holds(const PlacementException& exception, const NodeList& list, const ClusterState& state,
                     const DistributionConfig& distribution) {
  if (!list.contains(exception.from) || list.contains(exception.to)) return false;
  if (!is_available_for_placement(state.node(NodeId::storage(exception.to)))) return false;
  const std::optional<std::size_t> from = position_of(exception.from, distribution);
  const std::optional<std::size_t> to = position_of(exception.to, distribution);
  if (!from || !to || !has_capacity(*to, distribution)) return false;
  unsigned shared_from = 0;
  unsigned shared_to = 0;
  for (const std::uint16_t node : list) {
    if (node == exception.from) continue;
    const std::optional<std::size_t> other = position_of(node, distribution);
    if (!other) return false;
    shared_from = std::max(shared_from, shared_groups(*from, *other, distribution));
    shared_to = std::max(shared_to, shared_groups(*to, *other, distribution));
  }
  return shared_to <= shared_from;
}

NodeList with_exceptions_applied(const NodeList& list, std::span<const PlacementException> exceptions,
                                 const ClusterState& state, const DistributionConfig& distribution) {
  NodeList result = list;
  for (const PlacementException& exception : exceptions) {
    if (!exception_holds(exception, result, state, distribution)) continue;
    NodeList next;
    for (const std::uint16_t node : result) next.push_back(node == exception.from ? exception.to : node);
    result = next;
  }
  return result;
}

}  // namespace fjord
