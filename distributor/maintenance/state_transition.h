#pragma once

#include <functional>
#include <vector>

#include "context.h"
#include "maintenance/merge_scheduler.h"
#include "maintenance/replica_repair.h"
#include "maintenance/replica_set_installer.h"
#include "maintenance/report_collector.h"
#include "maintenance/transition_plan.h"

namespace fjord::distributor {

/// Takes the bucket database from one cluster state to the next: drops the entries that may be untrue, asks storage
/// nodes for their replicas of these buckets, and makes new entries from the reports. Confined to the executor.
class StateTransition {
 public:
  struct Hooks {
    std::function<void()> buckets_forgotten;  ///< Called when more buckets have to be collected again.
    std::function<void()> complete;           ///< Called when the bucket database is complete.
    std::function<void()> collected_again;    ///< Called at the end of collect_again().
  };
  /// The parts of the distributor that use the buckets afterwards; they outlive this object.
  struct Parts {
    ReplicaSetInstaller& installer;
    MergeScheduler& merges;
    ReplicaRepair& repair;
  };
  StateTransition(Context& context, Parts parts, Hooks hooks)
      : context_(context), parts_(parts), hooks_(std::move(hooks)), collector_(context), again_(context) {}

  /// Handles the context's new snapshot, which follows `before` (null: the new one is the first). Drops what may be
  /// untrue now.
  void forget_outdated(const rpc::ClusterSnapshot* before);
  /// Asks storage nodes for the buckets that are not known. Calls `complete` at the end, unless another state comes
  /// first.
  void collect();
  /// Asks storage nodes again for these buckets, whose replicas are not where they should be. Buckets without any
  /// replica become unavailable: what they held is not known.
  void collect_again(const std::vector<BucketId>& buckets);

 private:
  void recover_again(const std::vector<BucketId>& buckets, const ReportCollector::Reports& reports);
  void collect_rest(ReportCollector::Reports reports);
  void reconcile(ReportCollector::Reports reports);
  void build_database(ReportCollector::Reports reports);
  void recover_next();
  /// Fills a new entry from the reports. Returns true if its replica set has to be sent to its nodes.
  /// `under_same_state`: the bucket was served before under the cluster state that is in use.
  bool recover(BucketEntry& entry, const std::vector<ReplicaReport>& reports, std::size_t absent,
               bool under_same_state = false);
  void fill_in(BucketEntry& entry, RecoveryPlan& plan, const std::vector<ReplicaReport>& reports);

  Context& context_;
  Parts parts_;
  Hooks hooks_;
  ReportCollector collector_;
  ReportCollector again_;  ///< For collect_again().
  TransitionPlan plan_;
  /// Buckets that this distributor owned under the earlier state and has to collect again.
  std::vector<BucketId> outdated_;
  ReportCollector::Reports reports_;  ///< Reports of which entries are still to be made.
  std::vector<BucketId> to_install_;  ///< New entries whose replica sets are to be sent when the database is complete.
};

}  // namespace fjord::distributor
