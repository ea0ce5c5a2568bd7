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

/// Not retired, and of some capacity. One that is down counts, as it may come back.
bool is_to_stay(const ClusterState& state, std::uint16_t storage_node);

/// The state by which the replicas that exist are placed, for a PlacementAlgorithm: a node in maintenance keeps its
/// place, as it comes back with what it has. While no node of the distribution takes replicas the retired ones keep
/// theirs, as there is nowhere else to go.
ClusterState state_of_places(const ClusterState& state, const DistributionConfig& distribution);

/// The state by which new buckets are placed: on nodes that are up, so that a node in maintenance gets none; retired
/// nodes count as above.
ClusterState state_for_new_buckets(const ClusterState& state, const DistributionConfig& distribution);

/// Buckets are made with so many replicas and not with fewer; after that at least as many nodes hold a replica, current
/// or not. Nodes that are being emptied count for nothing: buckets may have left them already. Only while no other node
/// takes replicas they count, as they are not emptied then.
unsigned replicas_at_birth(const ClusterState& state, const DistributionConfig& distribution);

/// What a component acts on: a cluster state with the distribution configuration that goes with it. Neither is null.
/// A value; copies share the snapshots.
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
  /// By the algorithm that the distribution names.
  NodeList ideal_nodes(BucketId bucket) const {
    return placement_algorithm().ideal_nodes(bucket, *state, *distribution);
  }
  NodeList ideal_nodes(BucketId bucket, const PlacementAlgorithm& algorithm) const {
    return algorithm.ideal_nodes(bucket, *state, *distribution);
  }
  std::optional<std::uint16_t> owner(BucketId bucket) const { return distributor_of(bucket, *state); }
  bool owns(std::uint16_t distributor, BucketId bucket) const { return owner(bucket) == distributor; }
};

/// `view` with the state by which the replicas that exist are placed.
inline ClusterView view_of_places(const ClusterView& view) {
  return {std::make_shared<const ClusterState>(state_of_places(*view.state, *view.distribution)), view.distribution};
}

/// Ideal nodes and owners under one view, computed when first asked for and kept in flat arrays by the 2^bits
/// distribution buckets, so that each further question costs an array access. Above kMaxCachedBits distribution bits it
/// computes each time.
///
/// Threading: confined to one executor. Lifetime: `algorithm` outlives the cache.
class PlacementCache {
 public:
  static constexpr unsigned kMaxCachedBits = 20;

  /// By the algorithm that the distribution names.
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
  /// Per distribution bucket: how many ideal nodes (or kUnknownSize), and redundancy() entries of `nodes_`.
  std::vector<std::uint8_t> sizes_;
  std::vector<std::uint16_t> nodes_;
  std::vector<std::uint32_t> owners_;
};

}  // namespace fjord
