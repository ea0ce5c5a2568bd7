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

/// Returns true if both lists hold the same nodes, in any order.
inline bool same_nodes(NodeIndexes a, NodeIndexes b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

/// How much a replica lacks that is to be filled.
enum class Lack : std::uint8_t {
  Nothing,  ///< It has the same content as a member.
  Little,   ///< It was a member once, and is smaller than a member by at most kLittleBytes.
  Much,
};

constexpr std::uint64_t kLittleBytes = 1 << 20;

/// A replica that is catching up and lacks less than much.
struct NearlyFilled {
  std::uint16_t node = 0;
  Lack lack = Lack::Little;
};

/// What the owner knows about a bucket's replicas: where they are, and what is wrong with them.
struct ReplicaSetState {
  ReplicaSet set;           ///< The members: they are served, and each has every acknowledged write.
  NodeIndexes catching_up;  ///< Nodes that get every write, are not read, and become members after a merge.
  /// The nodes of `catching_up` that lacked nothing, or little, when they were reported. It hardly matters how full
  /// their disks are.
  std::vector<NearlyFilled> nearly_filled;
  NodeIndexes obsolete;  ///< Nodes with obsolete replicas: a merge reads them once more, then they are deleted.
  /// Nodes whose replicas have lost data. They are merged from an intact member, are not read while there is one, and
  /// do not count as complete.
  NodeIndexes damaged;
  bool unsafe_recovery = false;  ///< An operator has accepted the loss of what all members have lost.
  bool misplaced = false;        ///< A member is not where it should be, or there are too many members.
  bool dirty = false;            ///< Members may differ: reads ask all of them.
  /// Older writes may be on a non-member replica only, or on some members only. They become visible with the next
  /// merge.
  bool unsettled = false;

  bool is_damaged(std::uint16_t node) const { return contains(damaged, node); }
  bool is_catching_up(std::uint16_t node) const { return contains(catching_up, node); }
  Lack lack_of(std::uint16_t node) const {
    const auto known = std::find_if(nearly_filled.begin(), nearly_filled.end(),
                                    [&](const NearlyFilled& one) { return one.node == node; });
    return known == nearly_filled.end() ? Lack::Much : known->lack;
  }
  /// Notes that a replica that is catching up missed a write.
  void note_missed_write() {
    for (NearlyFilled& one : nearly_filled) one.lack = Lack::Little;
  }
  /// Returns true if the distributor knows of a replica on the node.
  bool lists(std::uint16_t node) const {
    return set.contains(node) || is_catching_up(node) || contains(obsolete, node);
  }
  /// Returns the members without known damage.
  NodeIndexes intact() const {
    NodeIndexes nodes;
    std::copy_if(set.nodes.begin(), set.nodes.end(), std::back_inserter(nodes), [&](auto n) { return !is_damaged(n); });
    return nodes;
  }
  /// Returns the member that the others are merged from: the first intact one; if none is intact, the first of all.
  std::uint16_t primary() const {
    const auto node = std::find_if(set.nodes.begin(), set.nodes.end(), [&](auto n) { return !is_damaged(n); });
    return node == set.nodes.end() ? set.nodes.front() : *node;
  }
  /// Returns the nodes with replicas that are not members.
  NodeIndexes non_members() const {
    NodeIndexes nodes = catching_up;
    nodes.insert(nodes.end(), obsolete.begin(), obsolete.end());
    return nodes;
  }
  /// Returns true if a replica is damaged and an intact member can repair it.
  bool repairable() const { return !damaged.empty() && !intact().empty(); }
  /// Returns true if members may differ. A write cannot depend on the content of one member then, because a merge may
  /// bring older writes.
  bool may_differ() const { return dirty || unsettled || repairable(); }
  bool wants_merge() const { return dirty || misplaced || !catching_up.empty() || !obsolete.empty() || repairable(); }
};

}  // namespace fjord::distributor
