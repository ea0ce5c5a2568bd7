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

/// True if the node is not retired and has a capacity. A node that is down counts, because it may come back.
bool is_to_stay(const ClusterState& state, std::uint16_t storage_node);

/// The state by which existing replicas are placed, for a PlacementAlgorithm. A node in maintenance keeps its place,
/// because it comes back with its replicas. Retired nodes keep theirs while no node of the distribution takes replicas,
/// because there is nowhere else to go.
ClusterState state_of_places(const ClusterState& state, const DistributionConfig& distribution);

/// The state by which new buckets are placed: on nodes that are up, so a node in maintenance gets none. Retired nodes
/// count as in state_of_places().
ClusterState state_for_new_buckets(const ClusterState& state, const DistributionConfig& distribution);

/// The number of replicas with which a bucket is created, and not with fewer; afterwards at least as many nodes hold a
/// replica, current or not. Nodes that are being emptied (retired or without capacity) do not count, because buckets
/// may have left them already. Retired ones count only while no other node takes replicas, as they are not emptied
/// then.
unsigned replicas_at_birth(const ClusterState& state, const DistributionConfig& distribution);

/// The cluster state that a component acts on, and the distribution configuration that goes with it. Neither is null. A
/// value; copies share the snapshots.
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
  /// Ideal nodes by the algorithm that the distribution names.
  NodeList ideal_nodes(BucketId bucket) const {
    return placement_algorithm().ideal_nodes(bucket, *state, *distribution);
  }
  NodeList ideal_nodes(BucketId bucket, const PlacementAlgorithm& algorithm) const {
    return algorithm.ideal_nodes(bucket, *state, *distribution);
  }
  std::optional<std::uint16_t> owner(BucketId bucket) const { return distributor_of(bucket, *state); }
  bool owns(std::uint16_t distributor, BucketId bucket) const { return owner(bucket) == distributor; }
};

/// `view` with the state by which existing replicas are placed.
inline ClusterView view_of_places(const ClusterView& view) {
  return {std::make_shared<const ClusterState>(state_of_places(*view.state, *view.distribution)), view.distribution};
}

/// Ideal nodes and owners under one view. They are computed when first asked for and kept in flat arrays by the 2^bits
/// distribution buckets, so that a further question costs an array access. Above kMaxCachedBits distribution bits each
/// question is computed.
///
/// Threading: confined to one executor. Lifetime: `algorithm` outlives the cache.
class PlacementCache {
 public:
  static constexpr unsigned kMaxCachedBits = 20;

  /// Uses the algorithm that the distribution names.
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
  /// By distribution bucket: the number of its ideal nodes, or kUnknownSize. Each has redundancy() entries in `nodes_`.
  std::vector<std::uint8_t> sizes_;
  std::vector<std::uint16_t> nodes_;
  std::vector<std::uint32_t> owners_;
};

}  // namespace fjord
