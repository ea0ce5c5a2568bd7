#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "fjord/cluster/replica_set.h"

namespace fjord::distributor {

using NodeIndexes = std::vector<std::uint16_t>;

inline bool contains(const NodeIndexes& nodes, std::uint16_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// True if both lists hold the same nodes, in any order.
inline bool same_nodes(NodeIndexes a, NodeIndexes b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

/// The owner's knowledge of a bucket's replicas: where they are, and what is wrong with them. A value.
struct ReplicaSetState {
  ReplicaSet set;           ///< Members: they are served, and each has every acknowledged write.
  NodeIndexes catching_up;  ///< They get every write, are not read, and become members after a merge.
  NodeIndexes obsolete;     ///< A merge reads these replicas once more, then they are deleted.
  /// Nodes whose replicas have lost data. They are merged from an intact member, are not read while there is one, and
  /// do not count as complete.
  NodeIndexes damaged;
  bool unsafe_recovery = false;  ///< An operator has given up what all members have lost.
  bool misplaced = false;        ///< A member is not where it should be, or there are too many members.
  bool dirty = false;            ///< Members may differ: reads ask all of them.
  /// Older writes may be on a non-member replica only, or on some members only. They become visible with the next
  /// merge.
  bool unsettled = false;

  bool is_damaged(std::uint16_t node) const { return contains(damaged, node); }
  bool is_catching_up(std::uint16_t node) const { return contains(catching_up, node); }
  /// True if the distributor knows of a replica on the node.
  bool lists(std::uint16_t node) const {
    return set.contains(node) || is_catching_up(node) || contains(obsolete, node);
  }
  /// Members without known damage.
  NodeIndexes intact() const {
    NodeIndexes nodes;
    std::copy_if(set.nodes.begin(), set.nodes.end(), std::back_inserter(nodes), [&](auto n) { return !is_damaged(n); });
    return nodes;
  }
  /// The member that the others are merged from: the first intact one, or the first of all if none is intact.
  std::uint16_t primary() const {
    const auto node = std::find_if(set.nodes.begin(), set.nodes.end(), [&](auto n) { return !is_damaged(n); });
    return node == set.nodes.end() ? set.nodes.front() : *node;
  }
  /// Replicas of nodes that are not members.
  NodeIndexes non_members() const {
    NodeIndexes nodes = catching_up;
    nodes.insert(nodes.end(), obsolete.begin(), obsolete.end());
    return nodes;
  }
  /// True if a replica is damaged and an intact member can repair it.
  bool repairable() const { return !damaged.empty() && !intact().empty(); }
  /// True if members may differ. A write cannot be based on one member then: a merge may still bring older writes.
  bool may_differ() const { return dirty || unsettled || repairable(); }
  bool wants_merge() const { return dirty || misplaced || !catching_up.empty() || !obsolete.empty() || repairable(); }
};

}  // namespace fjord::distributor
