#pragma once

#include <functional>
#include <vector>

#include "context.h"
#include "maintenance/bucket_reshaper.h"
#include "maintenance/merge_scheduler.h"
#include "maintenance/remove_retention.h"
#include "maintenance/replica_census.h"
#include "maintenance/replica_repair.h"
#include "maintenance/replica_set_installer.h"
#include "maintenance/state_transition.h"

namespace fjord::distributor {

/// Brings every bucket to its ideal replicas and keeps it there. Owns the parts of maintenance, asks storage nodes
/// regularly for damaged and large buckets, and is the only part of maintenance that operations call. Confined to the
/// executor.
class BucketMaintainer {
 public:
  struct Callbacks {
    std::function<void(BucketId)> bucket_ready;  ///< Called when operations that waited for the bucket may continue.
    std::function<void()> state_ready;           ///< Called when the bucket database is complete.
    std::function<void()> buckets_forgotten;     ///< Called when more buckets have to be collected again.
    /// See RemoveRetention::Hooks::stable_us.
    std::function<std::uint64_t(const BucketEntry&)> stable_us;
  };
  BucketMaintainer(Context& context, TunableRegistry& tunables, Callbacks callbacks);

  /// Handles the context's new snapshot, which follows `before` (null: the new one is the first). Drops what may be
  /// untrue now.
  void forget_outdated(const rpc::ClusterSnapshot* before);
  /// Asks storage nodes for the buckets that are not known; afterwards state_ready is called.
  void collect() { transition_.collect(); }
  /// Creates a bucket that no storage node holds; bucket_ready is called when it can be used.
  BucketEntry& create(BucketId bucket);
  /// Creates the parts of `bucket` that no storage node holds, as far as enough nodes are up. To be called only while
  /// no unreported bucket may exist. Returns true if a part is being created.
  bool create_missing(BucketId bucket);
  /// Queues a merge of the bucket, because a write missed a replica or members were found to differ.
  void repair(BucketEntry& entry);
  /// Merges the bucket before all others, because an operation waits until its members are known to have equal content.
  void await_sync(BucketEntry& entry) { merges_.await_sync(entry); }
  /// Notes that a replica that is catching up missed a write that all members have.
  void note_missed(BucketEntry& entry) {
    entry.disturb_merge();
    entry.note_missed_write();
  }
  /// Notes that a replica has lost data; it is merged from an intact one.
  void note_damaged(BucketEntry& entry, std::uint16_t node) { repair_.note_damaged(entry, node); }
  /// See ReplicaRepair::recover_unsafely().
  Status recover_unsafely(BucketId bucket) { return repair_.recover_unsafely(bucket); }
  /// Must be called when the last write in flight to the bucket has ended.
  void drained(BucketEntry& entry);

  /// Returns true if merges wait or are in progress, or maintenance is paused. Less urgent work then waits.
  bool is_busy_or_paused() const { return merges_.is_busy_or_paused(); }
  /// Returns a summary of the buckets whose merges fail repeatedly.
  MergeFailures::Summary failing() { return merges_.failing(); }

 private:
  void on_complete();
  void on_collected_again();
  void on_in_force(BucketEntry& entry, const Installation& done);
  /// Creates all missing buckets, as far as it is known that they do not exist and enough nodes are up. Later,
  /// whichever nodes are away, a part of the bucket space without a known bucket is one whose replicas are all away. It
  /// is not one to which nothing was ever written (docs/design/0001-first-architecture.md, "Unknown buckets").
  void create_all();
  /// Adds the entries of the parts of `bucket` that do not exist to the database and to `made`.
  void add_missing(BucketId bucket, std::vector<BucketId>& made);
  /// Like create(), but sends nothing yet.
  BucketEntry& begin_creation(BucketId bucket);
  void look_around();
  void note_report(std::uint16_t node, const rpc::GetBucketInfoReply& reply);
  void look_around_later();
  void look_for_joins_later();

  Context& context_;
  Callbacks callbacks_;
  ReplicaSetInstaller installer_;
  MergeScheduler merges_;
  ReplicaRepair repair_;
  BucketReshaper reshaper_;
  RemoveRetention retention_;
  StateTransition transition_;
  ReplicaCensus census_;
};

}  // namespace fjord::distributor
