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
/// nodes for their replicas of those, and makes new entries from the reports. Confined to the executor.
class StateTransition {
 public:
  struct Hooks {
    std::function<void()> buckets_forgotten;  ///< More buckets are collected again.
    std::function<void()> complete;           ///< The bucket database is complete.
  };
  /// The parts that go on with the buckets; they outlive this.
  struct Parts {
    ReplicaSetInstaller& installer;
    MergeScheduler& merges;
    ReplicaRepair& repair;
  };
  StateTransition(Context& context, Parts parts, Hooks hooks)
      : context_(context), parts_(parts), hooks_(std::move(hooks)), collector_(context) {}

  /// Takes in the context's new snapshot, which follows `before` (null: it is the first). Drops what may be untrue.
  void forget_outdated(const rpc::ClusterSnapshot* before);
  /// Asks storage nodes for the buckets that are not known; `complete` follows, unless another state comes first.
  void collect();

 private:
  void collect_rest(ReportCollector::Reports reports);
  void reconcile(ReportCollector::Reports reports);
  void build_database(const ReportCollector::Reports& reports);
  /// Fills in a fresh entry from the reports; true if its replica set has to be sent.
  bool recover(BucketEntry& entry, const std::vector<ReplicaReport>& reports, std::size_t absent);
  void fill_in(BucketEntry& entry, RecoveryPlan& plan, const std::vector<ReplicaReport>& reports);

  Context& context_;
  Parts parts_;
  Hooks hooks_;
  ReportCollector collector_;
  TransitionPlan plan_;
  std::vector<BucketId> outdated_;  // Owned before; to be collected again.
};

}  // namespace fjord::distributor
