#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/placement.h"
#include "fjord/cluster/replica_set.h"
#include "replica_set_state.h"

namespace fjord::distributor {

/// Step of the epoch of a set under which a bucket is made. Such a set serves nothing. Once all its members have it,
/// they get the same members under the next step, so a set with a higher step proves that the bucket was made on all of
/// them. Distributors of earlier versions served sets with this step, too.
constexpr std::uint64_t kBirthStep = 1;

/// Returns true if the set does not prove that all its members have the bucket.
inline bool is_birth(const ReplicaSet& set) {
  return set.epoch - ReplicaSet::make_epoch(set.state_version(), 0) == kBirthStep;
}

/// What one storage node has reported about a bucket.
struct ReplicaReport {
  std::uint16_t node = 0;
  BucketInfo info;
  ReplicaSet set;
  bool damaged = false;  ///< The replica has lost data.
};

/// What a distributor that takes over a bucket concludes from the reports.
struct RecoveryPlan {
  bool available = false;
  /// Nothing was ever written to the bucket, and it may not have been created on all nodes: `members` are all ideal
  /// nodes. The caller plans again with the nodes for a new bucket as ideal nodes, and needs as many of them.
  bool unborn = false;
  std::string reason;                      ///< Why the bucket is not available.
  std::vector<std::uint16_t> members;      ///< Nodes that hold every acknowledged write. Primary first.
  std::vector<std::uint16_t> catching_up;  ///< Ideal nodes that are not members.
  std::vector<std::uint16_t> obsolete;     ///< Nodes with an obsolete replica.
  bool differ = false;                     ///< Members do not hold the same entries.
  bool install = false;                    ///< The set must be installed before the bucket is served.
  ReplicaSet newest;                       ///< The newest replica set that was reported.
  std::uint64_t max_timestamp_us = 0;      ///< Highest timestamp in all reports.
};

/// Concludes which replicas may be served. There is at least one report; `reports` come from every storage node that is
/// up in `state` and holds a replica. `absent` is the number of configured storage nodes that are not up, or came back
/// without their data. `has_spare`: there are more storage nodes than a bucket has replicas. Rules:
/// docs/design/0001-first-architecture.md, "Replica sets".
RecoveryPlan plan_recovery(std::span<const ReplicaReport> reports, const ClusterState& state, const NodeList& ideal,
                           std::size_t absent, bool has_spare);

/// Returns how much the replica of `report` lacks of what the reported replicas of `members` have.
Lack lack_of(const ReplicaReport& report, std::span<const ReplicaReport> reports, const NodeIndexes& members);

}  // namespace fjord::distributor
