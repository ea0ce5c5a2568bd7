#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

/// The work that a bucket needs, the most urgent first.
enum class Need : std::uint8_t {
  Restore,  ///< Fewer members than there should be: one more failure may make the bucket unavailable.
  Repair,   ///< A replica has lost data.
  Sync,     ///< Members may differ.
  Move,     ///< A replica is not where it should be.
  Delete,   ///< A surplus replica exists.
  None,
};

/// The nodes that should be members of the bucket's set, the primary first: its ideal nodes, and some replicas that are
/// to go (members or catching up). As many of these stay as ideal nodes are missing because nodes that are to stay are
/// away. Without them there would be fewer replicas than wanted, and an absent node would be counted as a holder. Not
/// empty: without any ideal node the members stay.
std::vector<std::uint16_t> wanted_members(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// Members that a bucket should have: the redundancy, or the number of nodes that are to stay if that is less.
std::size_t wanted_replicas(const rpc::ClusterSnapshot& snapshot);

/// The replicas in `plan.obsolete`, and the nodes without a replica, that have to be filled because ideal nodes are
/// away and do not count as holders of a replica. `newest` is the newest set that was reported. Pure.
///
/// A node in maintenance counts as a holder if that set names it, or if the set has fewer members than wanted, since
/// the node must then be the one that is missing: no replica is made in its place. A set that is complete without it
/// was made while the node was away. If such a set loses a member, another node gets a replica. Replicas that exist are
/// brought in sync before any new one is made.
std::vector<std::uint16_t> stand_ins(const RecoveryPlan& plan, const ReplicaSet& newest, BucketId bucket,
                                     const rpc::ClusterSnapshot& snapshot);

/// True if a member is not one of wanted_members().
bool is_misplaced(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// The most urgent need of the bucket. `wanted` is wanted_members(). Pure.
Need need_of(const BucketEntry& entry, std::span<const std::uint16_t> wanted);
inline Need need_of(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  return need_of(entry, wanted_members(entry, snapshot));
}

/// The order of merges, lower first: buckets that operations wait for, then those to be restored, the ones with the
/// fewest intact members first, then the others by need.
unsigned priority_of(const BucketEntry& entry, Need need);

/// True for work that goes on while an operator has paused the movement of data.
constexpr bool is_for_safety(Need need) { return need <= Need::Sync; }

}  // namespace fjord::distributor
