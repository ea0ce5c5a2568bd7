#pragma once

#include <vector>

#include "context.h"

namespace fjord::distributor {

/// Returns the buckets with the distribution bits of the cluster state that this distributor owns, whether they exist
/// or not. The context has a snapshot.
std::vector<BucketId> owned_buckets(const Context& context);

/// Returns the owned buckets of which some part was reported by no storage node, while enough nodes are away that these
/// may hold it, or would be if `more_absent` further nodes were away. The bucket database is complete.
std::vector<BucketId> unreported_buckets(const Context& context, std::size_t more_absent = 0);

/// Returns the error for an unreported bucket: UNAVAILABLE, with the nodes that may hold it.
Status unreported(const Context& context);

/// Returns why a bucket cannot be made, if has_nodes_for_new() is false: UNAVAILABLE.
Status too_few_for_new(const Context& context);

}  // namespace fjord::distributor
