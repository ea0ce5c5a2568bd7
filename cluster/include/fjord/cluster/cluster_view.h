#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/cluster/ownership.h"
#include "fjord/cluster/placement.h"
#include "fjord/document/bucket_id.h"

namespace fjord {

/// Returns true if the node is not retired and has a capacity. A node that is down counts, because it may come back.
bool is_to_stay(const ClusterState& state, std::uint16_t storage_node);

/// Returns the state by which existing replicas are placed, for a PlacementAlgorithm. A node in maintenance keeps its
/// place, because it comes back with its replicas. Retired nodes keep their places while no node of the distribution
/// takes replicas, because their replicas cannot move anywhere.
ClusterState state_of_places(const ClusterState& state, const DistributionConfig& distribution);

/// Returns the state by which new buckets are placed: on nodes that are up, so not on nodes in maintenance. Retired
/// nodes count as in state_of_places().
ClusterState state_for_new_buckets(const ClusterState& state, const DistributionConfig& distribution);

/// Returns the number of replicas with which a bucket is always created. From then on at least that many nodes hold a
/// replica of it, be it current or obsolete. Nodes that are being emptied (retired or without capacity) do not count,
/// because buckets may have left them already. If no other node takes replicas, retired nodes are not emptied, and they
/// count.
unsigned replicas_at_birth(const ClusterState& state, const DistributionConfig& distribution);

/// The cluster state that a component acts on, and the distribution configuration that belongs to it. Neither is null.
/// Copies share both objects.
struct ClusterView {
  std::shared_ptr<const ClusterState> state = std::make_shared<const ClusterState>();
  std::shared_ptr<const DistributionConfig> distribution = std::make_shared<const DistributionConfig>();

  static ClusterView make(ClusterState cluster_state, DistributionConfig config) {
    return {std::make_shared<const ClusterState>(std::move(cluster_state)),
            std::make_shared<const DistributionConfig>(std::move(config))};
  }

  std::uint64_t version() const { return state->version(); }
  unsigned bits() const { return state->bits(); }
  unsigned redundancy() const { return distribution->redundancy(); }
  const NodeStateInfo& node(NodeId id) const { return state->node(id); }
  bool is_up(NodeId id) const { return state->is_up(id); }
  /// Returns the ideal nodes by the algorithm that the distribution names.
  NodeList ideal_nodes(BucketId bucket) const {
    return placement_algorithm().ideal_nodes(bucket, *state, *distribution);
  }
  NodeList ideal_nodes(BucketId bucket, const PlacementAlgorithm& algorithm) const {
    return algorithm.ideal_nodes(bucket, *state, *distribution);
  }
  std::optional<std::uint16_t> owner(BucketId bucket) const { return distributor_of(bucket, *state); }
  bool owns(std::uint16_t distributor, BucketId bucket) const { return owner(bucket) == distributor; }
};

/// Returns `view` with the state by which existing replicas are placed.
inline ClusterView view_of_places(const ClusterView& view) {
  return {std::make_shared<const ClusterState>(state_of_places(*view.state, *view.distribution)), view.distribution};
}

/// Ideal nodes and owners under one view. They are computed at the first request and kept in flat arrays by the 2^bits
/// distribution buckets, so that later requests cost one access to an array. Above kMaxCachedBits distribution bits
/// each request computes them.
///
/// Threading: confined to one executor. Lifetime: `algorithm` outlives the cache.
class PlacementCache {
 public:
  static constexpr unsigned kMaxCachedBits = 20;

  /// Makes a cache that uses the algorithm which the distribution names.
  explicit PlacementCache(ClusterView view);
  PlacementCache(ClusterView view, const PlacementAlgorithm& algorithm);

  const ClusterView& view() const { return view_; }
  NodeList ideal_nodes(BucketId bucket);
  std::optional<std::uint16_t> owner(BucketId bucket);
  bool owns(std::uint16_t distributor, BucketId bucket) { return owner(bucket) == distributor; }

 private:
  ClusterView view_;
  const PlacementAlgorithm& algorithm_;
  std::shared_ptr<const PlacementMap> map_;
  bool is_cached_;
  /// Number of ideal nodes by distribution bucket, or kUnknownSize; `nodes_` has redundancy() places for each bucket.
  std::vector<std::uint8_t> sizes_;
  std::vector<std::uint16_t> nodes_;
  std::vector<std::uint32_t> owners_;
};

}  // namespace fjord
