#pragma once

#include <vector>

#include "fjord/common/random.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

/// How clients, visits and subscriptions get newer cluster information: which distributor they ask, with which request,
/// and how they apply the answer. Each of them decides itself when to ask.

/// Returns a request for cluster information that is newer than the snapshot.
GetClusterInfo question_for_news(const SnapshotHolder& snapshots);

/// Applies the answer to question_for_news(). Returns whether the snapshot has changed. Errors: that of the call or
/// answer, and those of SnapshotHolder::update(). An answer with neither a state nor schemas has no news.
Result<bool> take_news(SnapshotHolder& snapshots, const Result<GetClusterInfoReply>& answer);

/// Returns a random distributor to ask: one that is up; if none is, any that the cluster state names; without a
/// snapshot, one of `bootstrap`. Returns an empty address if none is known.
Address any_distributor(const ClusterSnapshot* snapshot, const std::vector<Address>& bootstrap, Random& random);

/// Returns the indexes of the distributors that are up.
std::vector<std::uint16_t> distributors_up(const ClusterSnapshot& snapshot);

}  // namespace fjord::rpc
