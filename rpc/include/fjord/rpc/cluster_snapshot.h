#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/cluster_view.h"
#include "fjord/cluster/distribution.h"
#include "fjord/cluster/ownership.h"
#include "fjord/cluster/placement.h"
#include "fjord/common/result.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/document/document_id.h"
#include "fjord/document/document_type.h"
#include "fjord/rpc/common_messages.h"

namespace fjord::rpc {

/// One parsed version of what all nodes agree on: cluster state, distribution, addresses, document types. Immutable and
/// shared between threads. The document types always include the built-in ones.
class ClusterSnapshot {
 public:
  /// Returns a snapshot with the newer version of each part, from `newer` or from `old` (which may be null). Returns
  /// `old` itself if no part of `newer` is newer.
  ///
  /// Errors: InvalidArgument if a part does not parse. NotReady if `newer` has a cluster state without the schemas that
  /// go with it. WrongDistribution if `newer` comes from a lower term than `old`, unless it is empty or has only an old
  /// state that another process passes on. Corruption if the texts of `newer` and `old` differ for the same state
  /// version.
  static Result<std::shared_ptr<const ClusterSnapshot>> update(const std::shared_ptr<const ClusterSnapshot>& old,
                                                               const ClusterInfo& newer);

  /// Returns all parts of the snapshot as text, with none left out.
  const ClusterInfo& info() const { return info_; }
  std::uint64_t state_version() const { return info_.state_version; }
  std::uint64_t schema_version() const { return info_.schema_version; }
  /// Returns the highest term among the fleet controllers that this snapshot comes from.
  std::uint64_t term() const { return info_.term; }
  std::uint64_t config_version() const { return info_.config_version; }
  const ClusterState& state() const { return *state_; }
  const DistributionConfig& distribution() const { return *distribution_; }
  const std::shared_ptr<const DocumentTypeRepo>& types() const { return types_; }
  unsigned distribution_bits() const { return state_->bits(); }
  /// Returns the state that becomes active next, with a version above state_version(); null if none is known. Its
  /// addresses are in info(): pending_storage_addresses, or storage_addresses if these are empty.
  const ClusterView* pending() const { return pending_.get(); }
  /// Returns the version of the pending state; 0 if there is none.
  std::uint64_t pending_version() const { return pending_ == nullptr ? 0 : pending_->version(); }

  /// Returns the storage nodes that should hold the bucket and can be written at present, in order: at most
  /// `redundancy`. Nodes in maintenance keep their places and are left out; no other node takes their replicas.
  NodeList ideal_nodes(BucketId bucket) const;
  /// Returns the storage nodes that should hold the bucket, including nodes in maintenance (state_of_places()).
  NodeList places(BucketId bucket) const { return placement_of(bucket).nodes; }
  /// Returns the storage nodes on which a new bucket is created: nodes that are up, as many as the redundancy says;
  /// fewer if there are fewer nodes.
  NodeList nodes_for_new(BucketId bucket) const;
  std::optional<std::uint16_t> distributor_of(BucketId bucket) const { return placement_of(bucket).owner; }
  /// Returns the distribution bucket of a document: the first distribution_bits() bits. A split bucket has more bits.
  BucketId bucket_of(const GlobalId& gid) const { return fjord::bucket_of(gid, state_->bits()); }
  /// Returns true for a storage node that serves its replicas: it is up, or it is retired and being emptied.
  bool storage_serves(std::uint16_t node) const {
    const NodeState state = state_->node({NodeType::Storage, node}).state;
    return state == NodeState::Up || state == NodeState::Retired;
  }

  /// Returns true if both know the number of their cluster, and it is not the same.
  bool is_of_another_cluster(const ClusterInfo& newer) const { return is_of_another_cluster(newer.cluster_id); }
  bool is_of_another_cluster(std::uint64_t cluster_id) const {
    return cluster_id != 0 && info_.cluster_id != 0 && cluster_id != info_.cluster_id;
  }
  /// Returns the parts that are newer than these versions, for a client. Leaves out the pending state and the live
  /// configuration, which nodes get from the fleet controller.
  ClusterInfo info_newer_than(std::uint64_t state_version, std::uint64_t schema_version) const;

 private:
  struct Placement {
    NodeList nodes;  ///< The result of places().
    std::optional<std::uint16_t> owner;
  };
  ClusterSnapshot() = default;
  bool brings_news(const ClusterInfo& newer) const;
  /// Errors: InvalidArgument if `newer` is of another cluster.
  Status check_same_cluster(const ClusterInfo& newer) const;
  Status check_same_history(const ClusterInfo& newer) const;
  Status take_state(const ClusterInfo& newer);
  Status take_schemas(const ClusterInfo& newer);
  Status take_pending(const ClusterInfo& newer);
  void make_table();
  Placement compute(BucketId bucket) const;
  Placement placement_of(BucketId bucket) const;

  ClusterInfo info_;
  std::shared_ptr<const ClusterState> state_;
  std::shared_ptr<const DistributionConfig> distribution_;
  std::shared_ptr<const DocumentTypeRepo> types_;
  std::shared_ptr<const ClusterView> pending_;
  bool has_maintenance_ = false;  ///< True if a storage node is in maintenance, so that not all places are writable.
  std::shared_ptr<const ClusterState> places_state_;       ///< Cluster state from which places() are computed.
  std::shared_ptr<const PlacementMap> new_bucket_places_;  ///< Null unless a storage node is in maintenance.
  /// Placement of each distribution bucket, by its bits; empty if there are too many distribution bits for a table.
  std::shared_ptr<const std::vector<Placement>> table_;
};

/// The newest snapshot of a process. Threading: any thread.
class SnapshotHolder {
 public:
  /// What happens to information of another cluster than that of the snapshot (ClusterInfo::cluster_id): it is refused
  /// with InvalidArgument, or it takes the place of the whole snapshot.
  enum class Follows { OneCluster, AnyCluster };
  explicit SnapshotHolder(Follows follows = Follows::OneCluster) : follows_(follows) {}

  /// Returns the newest snapshot; null until the first update.
  std::shared_ptr<const ClusterSnapshot> get() const;
  /// Applies the parts of `newer` that are newer. Returns true if the snapshot changed. Errors: those of
  /// ClusterSnapshot::update; the snapshot then stays as it is.
  Result<bool> update(const ClusterInfo& newer);

 private:
  const Follows follows_;
  mutable std::mutex mutex_;
  std::shared_ptr<const ClusterSnapshot> current_ FJORD_GUARDED_BY(mutex_);
};

/// Returns the .sd texts of the types that Fjord itself stores, such as fjord_tuples, fjord_job and fjord_affinity.
const std::vector<std::string>& builtin_schemas();

}  // namespace fjord::rpc
