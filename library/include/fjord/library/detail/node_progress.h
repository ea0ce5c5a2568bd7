#pragma once

#include <cstdint>

#include "fjord/library/cluster_status.h"
#include "fjord/rpc/controller_messages.h"

namespace fjord {

/// Returns what is left to do of a change that the cluster has accepted with this plan. `most` is the largest number of
/// buckets left so far.
NodeChangeProgress progress_of(const rpc::GetStatusReply& status, const NodeChange& change, const NodePlan& plan,
                               std::uint64_t& most);

}  // namespace fjord
