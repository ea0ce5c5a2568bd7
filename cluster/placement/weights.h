#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "fjord/cluster/placement.h"
#include "straw2.h"

/// Used by all placement algorithms: weights, and the number of replicas of each group.
namespace fjord {

inline std::uint64_t weight_of_node(const DistributionGroup::Node& node, const NodeStateInfo& info) {
  if (node.capacity == 1.0 && info.capacity == 1.0) return straw2::kWeightOne;
  return straw2::weight_of(node.capacity * info.capacity);
}

struct GroupWeight {
  std::uint64_t weight = 0;     ///< Sum of the weights of all configured nodes.
  std::uint32_t available = 0;  ///< Number of available nodes.
};

/// Returns the weight of a group and the number of its available nodes; both are 0 if its capacity is 0.
GroupWeight weight_of_group(std::uint32_t group, const ClusterState& state,
                            std::span<const DistributionConfig::FlatGroup> groups,
                            std::span<const DistributionGroup::Node> nodes);

/// Divides `count` replicas among at most kMaxRedundancy ranked children, in rounds: one to each child that has room.
class ReplicaShares {
 public:
  template <typename RoomOfRank>
  ReplicaShares(std::size_t children, std::size_t count, RoomOfRank room) {
    for (std::size_t rank = 0; rank < children; ++rank) shares_[rank] = 0;
    for (bool has_room = true; has_room && sum_ < count;) {
      has_room = false;
      for (std::size_t rank = 0; rank < children && sum_ < count; ++rank) {
        if (shares_[rank] == room(rank)) continue;
        ++shares_[rank];
        ++sum_;
        has_room = true;
      }
    }
  }
  std::size_t operator[](std::size_t rank) const { return shares_[rank]; }
  std::size_t sum() const { return sum_; }

 private:
  std::array<std::uint32_t, kMaxRedundancy> shares_;
  std::size_t sum_ = 0;
};

}  // namespace fjord
