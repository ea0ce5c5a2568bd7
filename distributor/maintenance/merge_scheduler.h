#pragma once

#include <functional>
#include <vector>

#include "context.h"
#include "fjord/common/tunable.h"
#include "maintenance/bucket_merger.h"
#include "maintenance/merge_failures.h"
#include "maintenance/merge_queue.h"

namespace fjord::distributor {

/// Decides which buckets are merged, and when: in the order of their needs, at most `distributor.merges_max` at once,
/// and again after a pause if a merge was unsuccessful. BucketMerger executes the merges. Confined to the executor.
class MergeScheduler {
 public:
  struct Hooks {
    std::function<void(BucketId)> bucket_ready;  ///< Called when operations that waited for the bucket may continue.
    std::function<void(BucketEntry&, std::uint16_t)> damaged;  ///< Called when the node's replica has lost data.
    /// Called after a merge, when no write is in flight: all replicas are equal, or one is damaged. The next set may be
    /// installed.
    std::function<void(BucketEntry&)> merged;
  };
  MergeScheduler(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// Queues a merge; start() begins it. A waiting bucket moves forward if it has a more urgent need than before.
  void enqueue(BucketEntry& entry);
  /// Begins queued merges, up to the limit of merges in progress.
  void start();
  void enqueue_and_start(BucketEntry& entry) {
    enqueue(entry);
    start();
  }
  /// Queues those buckets again for whose merge there was no space.
  void retry_held_back();
  /// Merges the bucket before all others, because an operation waits until its members are known to have equal content.
  void await_sync(BucketEntry& entry);
  /// Must be called when the last write in flight to a bucket in activity::Draining has ended.
  void drained(BucketEntry& entry);
  /// Serves a bucket in activity::Draining or Comparing again, and merges it at once.
  void merge_again(BucketEntry& entry);
  /// Like merge_again(), but merges the bucket after `delay`, since the merge did not make its replicas equal.
  void merge_later(BucketEntry& entry, Duration delay);
  /// Ends the merge successfully: the next replica set says that all members are equal.
  void completed(BucketEntry& entry);
  void count_failure() { merge_failures_.add(); }
  /// Drops the merge of an entry that is about to be reset.
  void forget(const BucketEntry& entry);

  /// Returns true if an operator has paused maintenance, or the cluster is down. Only work for safety continues then.
  bool is_paused() const { return paused_.value() != 0 || !context_.snapshot->state().is_cluster_up(); }
  /// Returns true if merges wait or are in progress, or maintenance is paused.
  bool is_busy_or_paused() const { return is_paused() || under_way_ > 0 || !queue_.is_empty(); }
  /// Returns a summary of the buckets whose merges fail repeatedly.
  MergeFailures::Summary failing() { return failures_.summary(context_.buckets, context_.clock.now()); }

  /// Pause before an unsuccessful merge is repeated.
  static constexpr Duration kRetryDelay = milliseconds(100);

 private:
  bool is_held_back(const BucketEntry& entry) const;
  void begin(BucketEntry& entry);
  void give_up(BucketEntry& entry);
  void restart(BucketEntry& entry);
  void on_merged(BucketEntry& entry, bool ok);
  void enqueue_later(BucketEntry& entry, Duration delay);

  Context& context_;
  Hooks hooks_;
  const Tunable& merges_max_;
  const Tunable& paused_;
  MergeQueue queue_;
  /// Buckets whose merges would only fill a replica on a node without space for it. They wait here.
  std::vector<BucketTicket> held_back_;
  unsigned under_way_ = 0;
  std::uint32_t last_run_ = 0;
  MergeFailures failures_;
  BucketMerger merger_;
  Counter& merges_;
  Counter& merge_failures_;
};

}  // namespace fjord::distributor
