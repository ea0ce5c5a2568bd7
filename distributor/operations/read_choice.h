#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/common/random.h"
#include "fjord/document/bucket_id.h"

namespace fjord::distributor {

/// The read shares that the state has for a bucket of at least as many bits as the distribution. The span lives as long
/// as the state.
std::span<const ReadShare> read_shares_of(BucketId bucket, const ClusterState& state);

/// Chooses one of the nodes (at least one) at random, with a probability proportional to its share. A node without a
/// share is never chosen, unless none of the nodes has a share: then all are equally probable.
std::uint16_t choose_by_share(const std::vector<std::uint16_t>& nodes, std::span<const ReadShare> shares,
                              Random& random);

}  // namespace fjord::distributor
