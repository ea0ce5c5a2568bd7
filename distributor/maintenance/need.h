#pragma once

#include <cstdint>

#include "bucket_database.h"
#include "fjord/cluster/placement.h"

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

/// What a merge of the bucket is for: pure.
Need need_of(const BucketEntry& entry, const NodeList& ideal);

/// In which order buckets are merged: lower first. Of those to be restored, the ones with the fewest intact members.
unsigned priority_of(const BucketEntry& entry, Need need);

/// True for what an operator's pause of the movement of data does not hold back.
constexpr bool is_for_safety(Need need) { return need <= Need::Sync; }

}  // namespace fjord::distributor
