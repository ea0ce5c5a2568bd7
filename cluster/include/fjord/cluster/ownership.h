#pragma once

#include <cstdint>
#include <optional>

#include "fjord/cluster/cluster_state.h"
#include "fjord/document/bucket_id.h"

namespace fjord {

/// The index of the distributor that owns the bucket, or nothing if no distributor is up. Pure; any thread.
///
/// The straw2 draw of the placement over the distributors that are Up (no other state counts), all of the same weight.
/// Ownership follows the first state.bits() bits only, so a bucket stays with its distributor when it splits or joins.
/// As the draws are those of the storage nodes, in a flat cluster with a distributor beside each storage node the owner
/// of a bucket and its primary tend to share a machine.
std::optional<std::uint16_t> distributor_of(BucketId bucket, const ClusterState& state);

}  // namespace fjord
