#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/common/check.h"
#include "fjord/document/bucket_id.h"

namespace fjord {

/// Up to kMaxRedundancy node indexes in order, without allocation.
class NodeList {
 public:
  using value_type = std::uint16_t;

  NodeList() = default;
  NodeList(std::initializer_list<std::uint16_t> nodes) {
    for (std::uint16_t node : nodes) push_back(node);
  }
  explicit NodeList(std::span<const std::uint16_t> nodes) {
    for (std::uint16_t node : nodes) push_back(node);
  }

  void push_back(std::uint16_t node) {
    FJORD_CHECK(size_ < nodes_.size());
    nodes_[size_++] = node;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::uint16_t operator[](std::size_t position) const { return nodes_[position]; }
  /// Returns the primary. The list must not be empty.
  std::uint16_t front() const { return nodes_[0]; }
  const std::uint16_t* begin() const { return nodes_.data(); }
  const std::uint16_t* end() const { return nodes_.data() + size_; }
  bool contains(std::uint16_t node) const { return std::find(begin(), end(), node) != end(); }
  std::vector<std::uint16_t> to_vector() const { return {begin(), end()}; }

  friend bool operator==(const NodeList& a, const NodeList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::uint16_t, kMaxRedundancy> nodes_{};
  std::uint32_t size_ = 0;
};

/// A placement algorithm prepared for one state and one distribution. It returns the results of
/// PlacementAlgorithm::ideal_nodes(), but faster and without allocation. Immutable; any thread may call it.
class PlacementMap {
 public:
  virtual ~PlacementMap() = default;
  virtual NodeList ideal_nodes(BucketId bucket) const = 0;
};

/// Decides where the replicas of a bucket should be: a pure function, the same on every machine, that clients,
/// distributors and tools share. Implementations have no state; any thread may call them.
class PlacementAlgorithm {
 public:
  virtual ~PlacementAlgorithm() = default;

  /// The ideal storage nodes of a bucket, primary first: distinct, configured in `distribution`, available, and
  /// min(redundancy, available nodes) of them.
  ///
  /// A node is available by its state:
  ///
  ///     up            yes
  ///     initializing  no: gets its replicas when it is up
  ///     retired       no: its replicas move away
  ///     maintenance   no: it is coming back, but takes no writes
  ///     stopping      no
  ///     down          no; so is a node beyond the state's count
  ///
  /// A node with capacity 0 is not available. Replicas that exist elsewhere stay usable; this says only where they
  /// belong. A bucket is placed by its first state.bits() bits, so that it stays where it is when it splits; bits that
  /// a bucket does not use count as 0.
  ///
  /// The state's exceptions are applied to the result of the algorithm (PlacementException).
  ///
  /// Straw2 without a rule allocates nothing. The others prepare() on each call, so a caller with many buckets under
  /// one state prepares once itself.
  virtual NodeList ideal_nodes(BucketId bucket, const ClusterState& state,
                               const DistributionConfig& distribution) const = 0;

  /// Prepares the algorithm for many buckets. Takes time and memory in proportion to the nodes (consistent: to the
  /// tokens). Neither argument is null; the map shares them. The map of this default implementation calls ideal_nodes()
  /// each time, and must not outlive the algorithm.
  virtual std::shared_ptr<const PlacementMap> prepare(std::shared_ptr<const ClusterState> state,
                                                      std::shared_ptr<const DistributionConfig> distribution) const;
};

/// Returns the algorithm that follows the placement() of each distribution that it gets. It lives as long as the
/// process. Clients, distributors, controllers and tools use it.
const PlacementAlgorithm& placement_algorithm();
/// Returns an algorithm that uses `kind` on all levels and no rule, whatever the distribution says. It takes only the
/// number of tokens from the distribution's placement(). For comparisons.
const PlacementAlgorithm& placement_algorithm(PlacementKind kind);

/// Straw2 on all levels of the hierarchy, the default.
///
/// At each level every child draws ln(u) / weight, with u in (0, 1] from a hash of the bucket and the child alone, and
/// the children are ranked by their draws. The first ones get one replica each. If there are fewer children with
/// available nodes than replicas, children get more in further rounds, as many as they have room for. The list takes
/// the groups in turn, so its first entries are in different groups.
///
/// A draw depends on no other child and is not repeated. So a change of one weight moves replicas only to or from that
/// child, and when a node fails each of its buckets gets the next node in the ranking and keeps the others. The weight
/// of a group is its capacity times the sum of the capacities of all its configured nodes, available or not. Otherwise
/// the failure of a node would move replicas of its neighbours to other groups. The neighbours carry the failed node's
/// share until it is back or is removed from the configuration.
///
/// All arithmetic is on integers (a table for log2, 128-bit products), so the result is the same on all machines.
class Straw2Placement final : public PlacementAlgorithm {
 public:
  NodeList ideal_nodes(BucketId bucket, const ClusterState& state,
                       const DistributionConfig& distribution) const override;
  std::shared_ptr<const PlacementMap> prepare(std::shared_ptr<const ClusterState> state,
                                              std::shared_ptr<const DistributionConfig> distribution) const override;
};

/// Returns true if the placement may use the storage node; see the table at ideal_nodes().
inline bool is_available_for_placement(const NodeStateInfo& node) {
  return node.state == NodeState::Up && node.capacity > 0.0;
}

/// Returns the first `bits` bits of the bucket, by which it is placed.
std::uint64_t placement_key(BucketId bucket, unsigned bits);

}  // namespace fjord
