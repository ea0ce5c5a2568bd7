#pragma once

#include <cstdint>
#include <optional>

#include "fjord/cluster/cluster_state.h"
#include "fjord/document/bucket_id.h"

namespace fjord {

/// Returns the index of the distributor that owns the bucket; nothing if no distributor is up. Pure; any thread.
///
/// Chooses by straw2 among the distributors in state Up, which all have the same weight. Only the first state.bits()
/// bits of the bucket count, so that a bucket keeps its owner when it is split or joined. The random draws are those of
/// the storage nodes: in a flat cluster with a distributor beside each storage node, the owner and the primary of a
/// bucket tend to be on the same machine.
std::optional<std::uint16_t> distributor_of(BucketId bucket, const ClusterState& state);

}  // namespace fjord
