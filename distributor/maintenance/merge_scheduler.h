#pragma once

#include <functional>
#include <vector>

#include "context.h"
#include "fjord/common/tunable.h"
#include "maintenance/bucket_merger.h"
#include "maintenance/merge_failures.h"
#include "maintenance/merge_queue.h"

namespace fjord::distributor {

/// Decides which buckets are merged, and when: by need, not more than `distributor.merges_max` at once, and again after
/// a pause if a merge was unsuccessful. BucketMerger does the merges. Confined to the executor.
class MergeScheduler {
 public:
  struct Hooks {
    std::function<void(BucketId)> bucket_ready;                ///< Operations that waited for the bucket may go on.
    std::function<void(BucketEntry&, std::uint16_t)> damaged;  ///< The node's replica has lost data.
    /// All replicas hold the same, or one of them is damaged, and no write is in flight: the next set may follow.
    std::function<void(BucketEntry&)> merged;
  };
  MergeScheduler(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// Queues a merge; start() begins it. A bucket that waits moves forward if it needs more than when it was queued.
  void enqueue(BucketEntry& entry);
  /// Begins merges, as many as may be under way.
  void start();
  void enqueue_and_start(BucketEntry& entry) {
    enqueue(entry);
    start();
  }
  /// Queues those buckets again that there was no space for.
  void retry_held_back();
  /// Merges the bucket before all others: an operation waits until its members are known to be equal.
  void await_sync(BucketEntry& entry);
  /// The last write in flight to a bucket in activity::Draining has ended.
  void drained(BucketEntry& entry);
  /// Serves a bucket in activity::Draining or Comparing again, and merges it at once.
  void merge_again(BucketEntry& entry);
  /// The same, and merges it after `delay`, since the merge did not make its replicas equal.
  void merge_later(BucketEntry& entry, Duration delay);
  /// The merge has reached its end: a set follows in which all members are equal.
  void completed(BucketEntry& entry);
  void count_failure() { merge_failures_.add(); }
  /// Drops the work on an entry that is about to be reset.
  void forget(const BucketEntry& entry);

  /// True if an operator has paused maintenance, or the cluster is down. Only work for safety goes on then.
  bool is_paused() const { return paused_.value() != 0 || !context_.snapshot->state().is_cluster_up(); }
  /// True if merges wait or are under way, or maintenance is paused.
  bool is_busy_or_paused() const { return is_paused() || under_way_ > 0 || !queue_.is_empty(); }
  /// Buckets whose merges fail again and again.
  MergeFailures::Summary failing() { return failures_.summary(context_.buckets, context_.clock.now()); }

  /// Pause before a merge that was unsuccessful is tried again.
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
  /// Buckets that need nothing but to fill a replica, on a node that has no space for it.
  std::vector<BucketTicket> held_back_;
  unsigned under_way_ = 0;
  std::uint32_t last_run_ = 0;
  MergeFailures failures_;
  BucketMerger merger_;
  Counter& merges_;
  Counter& merge_failures_;
};

}  // namespace fjord::distributor
