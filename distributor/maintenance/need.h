#pragma once

#include <cstdint>
#include <vector>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"

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

/// The nodes that should be members of the bucket's set, the primary first: its ideal nodes, and of the members that
/// are to go as many as there are ideal nodes missing because nodes that are to stay are away. If these went, too,
/// there would be fewer copies than wanted, and the node that is away would be counted as one of those that have one.
std::vector<std::uint16_t> wanted_members(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// A member is not among those.
bool is_misplaced(const BucketEntry& entry, const rpc::ClusterSnapshot& snapshot);

/// What a merge of the bucket is for: pure.
Need need_of(const BucketEntry& entry, const NodeList& ideal);

/// In which order buckets are merged: lower first. Of those to be restored, the ones with the fewest intact members.
unsigned priority_of(const BucketEntry& entry, Need need);

/// True for what an operator's pause of the movement of data does not hold back.
constexpr bool is_for_safety(Need need) { return need <= Need::Sync; }

}  // namespace fjord::distributor
