#pragma once

#include <cstdint>
#include <set>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::distributor {

/// What a distributor has to ask before it can serve under a new cluster state. The rules and why they are enough:
/// docs/design/0005-cluster-that-changes.md, "Adopting a state".
struct Adoption {
  /// Nothing known counts any more: another distributor may have owned the buckets meanwhile.
  bool forget_all = false;
  /// Buckets may be there that nobody has told of: every node is asked for all it holds.
  bool ask_for_everything = false;
  /// Storage nodes that were away or have restarted: asked for all they hold.
  std::set<std::uint16_t> newcomers;
};

/// `before` is null in a distributor that has just started; `unfinished` is what it was still asking then, null if it
/// knew all its buckets.
Adoption plan_adoption(const rpc::ClusterSnapshot* before, const rpc::ClusterSnapshot& now, const Adoption* unfinished);

/// True if what is known of the bucket does not hold under `now`, the state that follows `before`: its replicas have to
/// be asked. A bucket that something is being done to counts as affected too.
bool is_affected(const BucketEntry& entry, const rpc::ClusterSnapshot& before, const rpc::ClusterSnapshot& now);

}  // namespace fjord::distributor
