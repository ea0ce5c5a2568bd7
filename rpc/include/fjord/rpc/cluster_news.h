#pragma once

#include <vector>

#include "fjord/common/random.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "fjord/rpc/transport.h"

namespace fjord::rpc {

/// How clients, visits and subscriptions get news of the cluster: which distributor they ask, for what, and what they
/// take from the answer. When they ask is up to them.

/// Returns the question for what is newer than the snapshot.
GetClusterInfo question_for_news(const SnapshotHolder& snapshots);

/// Takes the answer to that question. Returns whether the snapshot has changed. Errors: that of the call or of the
/// answer, and those of SnapshotHolder::update(). An answer with neither a state nor schemas has no news.
Result<bool> take_news(SnapshotHolder& snapshots, const Result<GetClusterInfoReply>& answer);

/// Returns a distributor to ask, at random: one that is up, without one any that the cluster state names, and without a
/// snapshot one of `bootstrap`. Empty: none is known.
Address any_distributor(const ClusterSnapshot* snapshot, const std::vector<Address>& bootstrap, Random& random);

/// Returns the indexes of the distributors that are up.
std::vector<std::uint16_t> distributors_up(const ClusterSnapshot& snapshot);

}  // namespace fjord::rpc
