#pragma once

#include <cstdint>
#include <set>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::distributor {

/// A state transition: the questions that a distributor has to ask before it can serve under a new cluster state. Rules
/// and proof: docs/design/0005-cluster-that-changes.md, "Adopting a state".
struct TransitionPlan {
  /// All entries are dropped: another distributor may have owned the buckets meanwhile.
  bool forget_all = false;
  /// Every node is asked for all its buckets: there may be buckets that no node has reported.
  bool ask_for_everything = false;
  /// Restarted nodes, and storage nodes that were away. They are asked for all their buckets.
  std::set<std::uint16_t> restarted;
};

/// Plans the transition from `before` to `now`. `before` is null in a distributor that has just started. `unfinished`
/// is the transition that was still in progress; null if all buckets were known.
TransitionPlan plan_transition(const rpc::ClusterSnapshot* before, const rpc::ClusterSnapshot& now,
                               const TransitionPlan* unfinished);

/// Returns true if the entry may be untrue under `now`, the state that follows `before`, so that its replicas have to
/// be asked. Returns true also while work on the bucket is left or in progress.
bool is_affected(const BucketEntry& entry, const rpc::ClusterSnapshot& before, const rpc::ClusterSnapshot& now);

}  // namespace fjord::distributor
