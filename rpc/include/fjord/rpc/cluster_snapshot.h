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
#include "fjord/document/document_type.h"
#include "fjord/rpc/messages.h"

namespace fjord::rpc {

/// One version of everything that all nodes agree on, parsed: cluster state, distribution, addresses, document types.
/// Immutable and shared; the document types always include the built-in ones of MapReduce.
class ClusterSnapshot {
 public:
  /// `newer` completed with what it leaves out and `old` has (`old` may be null). Returns `old` itself if `newer`
  /// brings nothing newer. Each part is taken by its own version.
  ///
  /// Errors: InvalidArgument if a part does not parse; WrongDistribution if `newer` comes from an older term than `old`
  /// (but not if it is a copy of something old that others pass on, or says nothing at all); Corruption if it has
  /// another text for a version of the state that `old` has too.
  static Result<std::shared_ptr<const ClusterSnapshot>> update(const std::shared_ptr<const ClusterSnapshot>& old,
                                                               const ClusterInfo& newer);

  /// Complete.
  const ClusterInfo& info() const { return info_; }
  std::uint64_t state_version() const { return info_.state_version; }
  std::uint64_t schema_version() const { return info_.schema_version; }
  /// The highest of the fleet controllers that this was heard from.
  std::uint64_t term() const { return info_.term; }
  std::uint64_t config_version() const { return info_.config_version; }
  const ClusterState& state() const { return *state_; }
  const DistributionConfig& distribution() const { return *distribution_; }
  const std::shared_ptr<const DocumentTypeRepo>& types() const { return types_; }
  unsigned distribution_bits() const { return state_->bits(); }
  /// The state that will be active next; null if none is known. Its version is above state_version(). Addresses are in
  /// info(): pending_storage_addresses, or storage_addresses if these are empty.
  const ClusterView* pending() const { return pending_.get(); }
  /// 0 if there is none.
  std::uint64_t pending_version() const { return pending_ == nullptr ? 0 : pending_->version(); }

  /// Where replicas of the bucket belong and can be written now. Ordered; at most `redundancy` storage nodes that are
  /// up. There are fewer while nodes in maintenance keep their places: nothing is copied for these.
  NodeList ideal_nodes(BucketId bucket) const;
  /// Where replicas of the bucket belong, with the nodes in maintenance (state_of_places()).
  NodeList places(BucketId bucket) const { return placement_of(bucket).nodes; }
  /// Where a bucket is made that does not exist yet: on nodes that are up, as many as there should be if there are so
  /// many.
  NodeList nodes_for_new(BucketId bucket) const;
  std::optional<std::uint16_t> distributor_of(BucketId bucket) const { return placement_of(bucket).owner; }
  /// The bucket of a document while buckets are not split: the first `distribution_bits` bits.
  BucketId bucket_of(const GlobalId& gid) const { return fjord::bucket_of(gid, state_->bits()); }
  /// True for a storage node that answers for its replicas: one that is up, or retired and being emptied.
  bool storage_serves(std::uint16_t node) const {
    const NodeState state = state_->node({NodeType::Storage, node}).state;
    return state == NodeState::Up || state == NodeState::Retired;
  }

  /// What `info` should say to somebody who knows these versions: newer parts only. Pending state and configuration are
  /// the fleet controller's to tell.
  ClusterInfo info_newer_than(std::uint64_t state_version, std::uint64_t schema_version) const;

 private:
  struct Placement {
    NodeList nodes;  ///< places().
    std::optional<std::uint16_t> owner;
  };
  ClusterSnapshot() = default;
  bool brings_news(const ClusterInfo& newer) const;
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
  bool has_maintenance_ = false;  ///< A storage node is in maintenance, so places are not all writable.
  std::shared_ptr<const ClusterState> places_state_;       ///< What places() are computed by.
  std::shared_ptr<const PlacementMap> new_bucket_places_;  ///< Null unless a storage node is in maintenance.
  /// By the bucket's lowest bits; empty with too many distribution bits for a table.
  std::shared_ptr<const std::vector<Placement>> table_;
};

/// The newest snapshot of a process, for readers on every thread.
class SnapshotHolder {
 public:
  /// Null until the first update.
  std::shared_ptr<const ClusterSnapshot> get() const;
  /// Takes `newer` in if it is; returns true if the snapshot changed. Errors as ClusterSnapshot::update; then nothing
  /// of `newer` is taken.
  Result<bool> update(const ClusterInfo& newer);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ClusterSnapshot> current_ FJORD_GUARDED_BY(mutex_);
};

/// The .sd texts of the types that Fjord itself stores: fjord_tuples, fjord_result.
const std::vector<std::string>& builtin_schemas();

}  // namespace fjord::rpc
