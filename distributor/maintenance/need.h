#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "maintenance/recovery.h"

namespace fjord::distributor {

/// The work that a bucket needs, most urgent first.
enum class Need : std::uint8_t {
  Restore,  ///< Fewer members than there should be: one more failure may make the bucket unavailable.
  Repair,   ///< A replica has lost data, and an intact member can repair it.
  Sync,     ///< Members may differ.
  Move,     ///< A replica is not on the node where it should be.
  Delete,   ///< A surplus replica exists.
  None,
};

/// Returns the nodes that should be members of the bucket's set, primary first: its ideal nodes, and some other nodes
/// that have a replica (as members or catching up). As many of the others stay as ideal nodes are missing which are
/// away and will come back: without them there would be fewer replicas than wanted, and an absent node would count as a
/// holder. Never empty: without any ideal node the members stay.
std::vector<std::uint16_t> wanted_members(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// Returns how many members a bucket should have: the redundancy, or the number of nodes that are to stay if that is
/// less.
std::size_t wanted_replicas(const rpc::ClusterSnapshot& snapshot);

/// Returns nodes to fill because ideal nodes are away and do not count as holders of a replica: nodes with replicas in
/// `plan.obsolete`, then nodes without a replica. `newest` is the newest set that was reported. Pure.
///
/// A node in maintenance counts as a holder if `newest` names it. It also counts if `newest` has fewer members than
/// wanted, since the node must then be the missing member; no replica is made in its place. If `newest` is complete
/// without the node, it was made while the node was away. If such a set loses a member, another node gets a replica.
/// Existing replicas are brought in sync before new ones are made.
std::vector<std::uint16_t> stand_ins(const RecoveryPlan& plan, const ReplicaSet& newest, BucketId bucket,
                                     const rpc::ClusterSnapshot& snapshot);

/// Returns true if a member is not one of wanted_members().
bool is_misplaced(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// Returns the most urgent need of the bucket. `wanted` is the result of wanted_members(). Pure.
Need need_of(const BucketEntry& entry, std::span<const std::uint16_t> wanted);
inline Need need_of(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot) {
  return need_of(entry, wanted_members(entry, snapshot));
}

/// Returns the place of a bucket in the order of merges; lower numbers are merged first: first buckets that operations
/// wait for, then those to be restored (with the fewest intact members first), then the others by need.
unsigned priority_of(const BucketEntry& entry, Need need);

/// Returns true for work that continues while an operator has paused the movement of data.
constexpr bool is_for_safety(Need need) { return need <= Need::Sync; }

}  // namespace fjord::distributor
