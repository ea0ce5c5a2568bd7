#pragma once

#include <cstdint>
#include <optional>

#include "fjord/cluster/cluster_state.h"
#include "fjord/document/bucket_id.h"

namespace fjord {

/// The index of the distributor that owns the bucket, or nothing if no distributor is up. Pure; any thread.
///
/// A straw2 draw over the distributors that are Up (no other state counts), all with the same weight. Only the first
/// state.bits() bits count, so a bucket keeps its owner when it splits or joins. The draws are those of the storage
/// nodes: in a flat cluster with a distributor beside each storage node, a bucket's owner and its primary tend to share
/// a machine.
std::optional<std::uint16_t> distributor_of(BucketId bucket, const ClusterState& state);

}  // namespace fjord
