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
#include "maintenance/state_adoption.h"

namespace fjord::distributor {

/// Brings the bucket database up after a change of the cluster state, and every bucket to its ideal replicas:
/// asks storage nodes for reports, installs replica sets, merges, deletes what is surplus. Confined to the executor.
class BucketMaintainer {
 public:
  struct Callbacks {
    std::function<void(BucketId)> bucket_ready;  ///< Operations that waited for the bucket may go on.
    std::function<void()> state_ready;           ///< The database is complete.
    std::function<void()> buckets_forgotten;     ///< More buckets are being collected anew.
    /// RemoveRetention's.
    std::function<std::uint64_t(const BucketEntry&)> stable_us;
  };
  BucketMaintainer(Context& context, TunableRegistry& tunables, Callbacks callbacks);

  /// The context has a new snapshot, after `before` (null: the first). Forgets what is no longer known for sure.
  void forget_outdated(const rpc::ClusterSnapshot* before);
  /// Asks for what is not known; state_ready follows.
  void collect();
  /// Makes a bucket that no storage node holds; bucket_ready follows.
  BucketEntry& create(BucketId bucket);
  /// A write did not reach every replica, or members were found to differ.
  void repair(BucketEntry& entry);
  /// An operation waits until the members are known to be equal: their merge comes before all others.
  void await_sync(BucketEntry& entry);
  /// A replica that is being filled did not get a write that all members have.
  void note_missed(BucketEntry& entry) { entry.disturbed = true; }
  /// A replica has lost something: it is merged from an intact one.
  void note_damaged(BucketEntry& entry, std::uint16_t node);
  /// What is left of a bucket without an intact replica becomes all there is, once its replicas hold the same. Errors:
  /// NotReady; NotFound if there is no such bucket here; InvalidArgument if a replica is intact.
  Status accept_loss(BucketId bucket);
  /// The last write under way in a paused bucket has ended.
  void drained(BucketEntry& entry);

  /// Merges wait or are under way, or maintenance is paused: nothing less urgent is to be done now.
  bool is_busy_or_paused() const;

  std::size_t out_of_sync() const;
  std::size_t unavailable() const;
  std::size_t damaged() const;
  /// Buckets whose merges fail again and again.
  MergeFailures::Summary failing() { return failures_.summary(context_.buckets, context_.clock.now()); }
  /// Buckets that are served with fewer intact members than there should be.
  std::size_t under_replicated() const;

 private:
  /// An operator has paused maintenance, or the cluster is down: only what is for safety is done.
  bool is_paused() const;
  /// Of an entry that is about to be forgotten.
  void forget_work(const BucketEntry& entry);
  void collect_rest(ReportCollector::Reports reports);
  void reconcile(ReportCollector::Reports reports);
  void build_database(const ReportCollector::Reports& reports);
  /// Fills a fresh entry in; true if its replica set has to be installed.
  bool recover(BucketEntry& entry, const std::vector<ReplicaReport>& reports, std::size_t absent);
  /// Without a spare node no bucket can be made while one is away, so all are made as long as nobody is.
  void create_all();

  /// A set that is being written down.
  struct Install {
    std::set<std::uint16_t> missing;    ///< Nodes whose answer is missing.
    std::optional<BucketInfo> content;  ///< Of the first member that told it.
  };

  /// Writes the entry's set down on its members and creates the bucket on the nodes that are being filled.
  void install(const std::vector<BucketId>& buckets);
  void join_damaged_late(BucketEntry& entry);
  void send_install(std::uint16_t node, const std::vector<BucketId>& buckets);
  void on_installed(std::uint16_t node, const std::vector<BucketTicket>& tickets,
                    Result<rpc::SetReplicaSetsReply> reply);
  void compare_content(BucketEntry& entry, std::uint16_t node, const BucketInfo& content, Install& install);
  void installed_on_all(BucketEntry& entry);
  void installed(BucketEntry& entry);

  void enqueue_merge(BucketEntry& entry);
  void restart_merge(BucketEntry& entry);
  bool is_held_back(const BucketEntry& entry) const;
  /// The nodes that can be filled now.
  std::vector<std::uint16_t> fillable(const BucketEntry& entry) const;
  std::uint16_t merge_source(const BucketEntry& entry) const;
  void start_merges();
  void merge_primary(BucketId bucket);
  void merge_members(BucketId bucket);
  void merge_filling(BucketId bucket);
  void merge_from_primary(BucketId bucket, std::vector<std::uint16_t> targets, UniqueFunction<void(bool)> done);
  void merge_done(BucketId bucket, bool ok);
  void merge_again(BucketEntry& entry);
  void merge_later(const BucketEntry& entry, Duration delay);
  /// All replicas hold the same, or one of them is damaged; no write is under way.
  void finish_merge(BucketEntry& entry);
  void compare_replicas(BucketId bucket);
  void on_compared(BucketId bucket, const std::map<std::uint16_t, rpc::BucketReport>& reports, std::size_t asked);
  void keep_damaged_set(BucketEntry& entry);
  void extend_set(BucketEntry& entry);
  void delete_surplus(BucketEntry& entry, std::uint16_t node);
  void send_merge(BucketId bucket, std::uint16_t target, std::vector<std::uint16_t> sources,
                  std::vector<std::uint16_t> outsiders, UniqueFunction<void(bool)> done);

  void look_around();
  void look_around_later();
  void look_for_joins_later();

  /// Runs `task` later unless what is known of the bucket has been forgotten by then.
  void later(const BucketEntry& entry, Duration delay, UniqueFunction<void(BucketEntry&)> task);

  /// Replicas that are whole again, and what an intact one holds.
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
  Adoption adoption_;
  std::vector<BucketId> outdated_;  // Owned before, and to be collected anew.
  std::map<std::uint64_t, Install> installs_;
  std::map<std::uint64_t, std::vector<std::uint16_t>> surplus_;  // To delete when the set is installed.
  std::map<std::uint64_t, Repair> repairs_;                      // To be told with the set that is being installed.
  MergeQueue merge_queue_;
  std::vector<BucketTicket> held_back_;  // Buckets that need nothing but space on a node, for a replica to be filled.
  unsigned merges_under_way_ = 0;
  MergeFailures failures_;
  Counter& merges_;
  Counter& merge_failures_;
  Counter& damaged_replicas_;
  Counter& repaired_replicas_;
  Counter& accepted_replicas_;
};

}  // namespace fjord::distributor
