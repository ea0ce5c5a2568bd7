#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "context.h"
#include "maintenance/bucket_reshaper.h"
#include "maintenance/merge_failures.h"
#include "maintenance/merge_queue.h"
#include "maintenance/need.h"
#include "maintenance/remove_retention.h"
#include "maintenance/report_collector.h"
#include "maintenance/transition_plan.h"

namespace fjord::distributor {

/// Builds the bucket database after a change of the cluster state, and brings every bucket to its ideal replicas: asks
/// storage nodes for reports, installs replica sets, merges, deletes surplus replicas. Confined to the executor.
class BucketMaintainer {
 public:
  struct Callbacks {
    std::function<void(BucketId)> bucket_ready;  ///< Operations that waited for the bucket may go on.
    std::function<void()> state_ready;           ///< The bucket database is complete.
    std::function<void()> buckets_forgotten;     ///< More buckets are collected again.
    /// RemoveRetention::Hooks::stable_us.
    std::function<std::uint64_t(const BucketEntry&)> stable_us;
  };
  BucketMaintainer(Context& context, TunableRegistry& tunables, Callbacks callbacks);

  /// Takes in the context's new snapshot, which follows `before` (null: it is the first). Drops what may be untrue.
  void forget_outdated(const rpc::ClusterSnapshot* before);
  /// Asks storage nodes for the buckets that are not known; state_ready follows.
  void collect();
  /// Creates a bucket that no storage node holds; bucket_ready follows.
  BucketEntry& create(BucketId bucket);
  /// Has the bucket merged, because a write missed a replica or members were found to differ.
  void repair(BucketEntry& entry);
  /// Merges the bucket before all others: an operation waits until its members are known to be equal.
  void await_sync(BucketEntry& entry);
  /// Notes that a replica that is catching up missed a write that all members have.
  void note_missed(BucketEntry& entry) { entry.disturbed = true; }
  /// Notes that a replica has lost data; it is merged from an intact one.
  void note_damaged(BucketEntry& entry, std::uint16_t node);
  /// Unsafe recovery of a bucket without an intact replica: what is left becomes its content, once its replicas hold
  /// the same. Errors: NotReady; NotFound if there is no such bucket here; InvalidArgument if a replica is intact.
  Status recover_unsafely(BucketId bucket);
  /// The last write in flight to a paused bucket has ended.
  void drained(BucketEntry& entry);

  /// True if merges wait or are under way, or maintenance is paused. Less urgent work waits then.
  bool is_busy_or_paused() const;

  std::size_t out_of_sync() const;
  std::size_t unavailable() const;
  std::size_t damaged() const;
  /// Buckets whose merges fail again and again.
  MergeFailures::Summary failing() { return failures_.summary(context_.buckets, context_.clock.now()); }
  /// Buckets that are served with fewer intact members than there should be.
  std::size_t under_replicated() const;

 private:
  /// True if an operator has paused maintenance, or the cluster is down. Only work for safety goes on then.
  bool is_paused() const;
  /// Drops the work on an entry that is about to be forgotten.
  void forget_work(const BucketEntry& entry);
  void collect_rest(ReportCollector::Reports reports);
  void reconcile(ReportCollector::Reports reports);
  void build_database(const ReportCollector::Reports& reports);
  /// Fills in a fresh entry from the reports; true if its replica set has to be installed.
  bool recover(BucketEntry& entry, const std::vector<ReplicaReport>& reports, std::size_t absent);
  /// Creates all missing buckets. Without a spare node none can be created while a node is away.
  void create_all();

  /// One bucket of a message with replica sets.
  struct SentSet {
    BucketTicket ticket;
    std::uint64_t epoch = 0;  ///< Epoch that was sent; 0: the node is catching up.
  };
  /// A replica set that is being installed.
  struct Install {
    std::set<std::uint16_t> missing;    ///< Nodes that have not answered yet.
    std::optional<BucketInfo> content;  ///< Content that the first member reported.
  };

  /// Sends the entry's set to its members and creates the bucket on the nodes that are catching up.
  void install(const std::vector<BucketId>& buckets);
  void join_damaged_late(BucketEntry& entry);
  void send_install(std::uint16_t node, const std::vector<BucketId>& buckets);
  void on_installed(std::uint16_t node, const std::vector<SentSet>& sent, Result<rpc::SetReplicaSetsReply> reply);
  void compare_content(BucketEntry& entry, std::uint16_t node, const BucketInfo& content, Install& install);
  void installed_on_all(BucketEntry& entry);
  void installed(BucketEntry& entry);

  void enqueue_merge(BucketEntry& entry);
  void restart_merge(BucketEntry& entry);
  bool is_held_back(const BucketEntry& entry) const;
  /// The replicas of `catching_up` whose nodes have the space for it.
  std::vector<std::uint16_t> fillable(const BucketEntry& entry) const;
  std::uint16_t merge_source(const BucketEntry& entry) const;
  void start_merges();
  void merge_primary(BucketId bucket);
  void merge_members(BucketId bucket);
  void merge_catching_up(BucketId bucket);
  void merge_from_primary(BucketId bucket, std::vector<std::uint16_t> targets, UniqueFunction<void(bool)> done);
  void merge_done(BucketId bucket, bool ok);
  void merge_again(BucketEntry& entry);
  void merge_later(const BucketEntry& entry, Duration delay);
  /// Ends a merge: all replicas hold the same, or one of them is damaged, and no write is in flight.
  void finish_merge(BucketEntry& entry);
  void compare_replicas(BucketId bucket);
  void on_compared(BucketId bucket, const std::map<std::uint16_t, rpc::BucketReport>& reports, std::size_t asked);
  void keep_damaged_set(BucketEntry& entry);
  void extend_set(BucketEntry& entry);
  void delete_surplus(BucketEntry& entry, std::uint16_t node);
  void send_merge(BucketId bucket, std::uint16_t target, std::vector<std::uint16_t> sources,
                  std::vector<std::uint16_t> non_members, UniqueFunction<void(bool)> done);

  void look_around();
  void look_around_later();
  void look_for_joins_later();

  /// Runs `task` after `delay`, unless the entry has been reset by then.
  void later(const BucketEntry& entry, Duration delay, UniqueFunction<void(BucketEntry&)> task);

  /// Repaired replicas, and the content of an intact one.
  struct Repair {
    std::vector<std::uint16_t> nodes;
    BucketInfo intact;
  };

  Context& context_;
  Callbacks callbacks_;
  const Tunable& merges_max_;
  const Tunable& paused_;
  ReportCollector collector_;
  BucketReshaper reshaper_;
  RemoveRetention retention_;
  TransitionPlan transition_;
  std::vector<BucketId> outdated_;  // Owned before; to be collected again.
  std::map<std::uint64_t, Install> installs_;
  std::map<std::uint64_t, std::vector<std::uint16_t>> surplus_;  // To delete when the set is installed.
  std::map<std::uint64_t, Repair> repairs_;  // To be marked as repaired by the set that is being installed.
  MergeQueue merge_queue_;
  // Buckets that need nothing but to fill a replica, on a node that has no space for it.
  std::vector<BucketTicket> held_back_;
  unsigned merges_under_way_ = 0;
  MergeFailures failures_;
  Counter& merges_;
  Counter& merge_failures_;
  Counter& damaged_replicas_;
  Counter& repaired_replicas_;
  Counter& unsafely_recovered_;
};

}  // namespace fjord::distributor
