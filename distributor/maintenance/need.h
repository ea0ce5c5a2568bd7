#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

/// What has to be done to a bucket, the most urgent first.
enum class Need : std::uint8_t {
  Restore,  ///< Fewer members than there should be: one more failure may make the bucket unavailable.
  Repair,   ///< A replica has lost something.
  Sync,     ///< Members may differ.
  Move,     ///< A replica is not where it should be.
  Delete,   ///< A replica is left over.
  None,
};

/// The nodes that should be members of the bucket's set, the primary first: its ideal nodes, and of the members and the
/// replicas being filled that are to go as many as there are ideal nodes missing because nodes that are to stay are
/// away. If these went, too, there would be fewer copies than wanted, and the node that is away would be counted as one
/// of those that have one. Not empty: without any ideal node the members stay.
std::vector<std::uint16_t> wanted_members(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// Members that a bucket should have: the redundancy, or the number of nodes that are to stay if that is less.
std::size_t wanted_copies(const rpc::ClusterSnapshot& snapshot);

/// The replicas in `plan.stale`, and nodes without a replica, that are to be filled because nodes of the ideal state
/// are away and do not count as holders of a replica. `newest` is the newest set that was reported. Pure.
///
/// A node in maintenance counts as a holder if that set names it, or has too few members for it not to have been one:
/// nothing is copied for it. A set that is complete without it was made while the node was away; if such a set loses a
/// member, somebody else gets a replica. Replicas that exist are brought in sync before any new one is made.
std::vector<std::uint16_t> stand_ins(const RecoveryPlan& plan, const ReplicaSet& newest, BucketId bucket,
                                     const rpc::ClusterSnapshot& snapshot);

/// A member is not among those.
bool is_misplaced(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// What a merge of the bucket is for: pure. `wanted`: wanted_members().
Need need_of(const BucketEntry& entry, std::span<const std::uint16_t> wanted);
inline Need need_of(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  return need_of(entry, wanted_members(entry, snapshot));
}

/// In which order buckets are merged: lower first. Buckets that operations wait for come first, then those to be
/// restored, the ones with the fewest intact members before the others.
unsigned priority_of(const BucketEntry& entry, Need need);

/// True for what an operator's pause of the movement of data does not hold back.
constexpr bool is_for_safety(Need need) { return need <= Need::Sync; }

}  // namespace fjord::distributor
