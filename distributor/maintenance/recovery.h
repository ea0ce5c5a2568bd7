#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/placement.h"
#include "fjord/cluster/replica_set.h"

namespace fjord::distributor {

/// What one storage node said of a bucket.
struct ReplicaReport {
  std::uint16_t node = 0;
  BucketInfo info;
  ReplicaSet set;
  bool damaged = false;  ///< It has lost something.
};

/// What a distributor that takes over a bucket may conclude from the reports.
struct RecoveryPlan {
  bool available = false;
  /// It was about to be made and nothing was ever written to it: `members` is the whole ideal state. It has to be
  /// planned with the nodes of a new bucket as that state, and needs as many of them.
  bool unborn = false;
  std::string reason;                  ///< Why it is not available.
  std::vector<std::uint16_t> members;  ///< Hold every acknowledged write. Primary first.
  std::vector<std::uint16_t> filling;  ///< Of the ideal state, but not members.
  std::vector<std::uint16_t> stale;    ///< Hold a replica that counts for nothing.
  bool differ = false;                 ///< Members do not hold the same entries.
  bool install = false;                ///< The set must be written down before it is served.
  ReplicaSet newest;                   ///< The newest set found.
  std::uint64_t max_timestamp_us = 0;  ///< Over all reports.
};

/// `reports` come from every storage node that is up in `state` and holds a replica; at least one. `absent` is the
/// number of configured storage nodes that are not up. Rules: docs/design/0001-first-architecture.md, "Replica sets".
RecoveryPlan plan_recovery(std::span<const ReplicaReport> reports, const ClusterState& state, const NodeList& ideal,
                           std::size_t absent);

}  // namespace fjord::distributor
