#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {

/// What is known of one node when an operator asks.
struct NodeFacts {
  NodeId id;
  NodeState state = NodeState::Down;  ///< In the active cluster state.
  WantedState wanted = {};
  bool is_fresh = false;            ///< It answered the last polls.
  std::uint64_t state_version = 0;  ///< That its numbers belong to.
  std::uint64_t buckets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t buckets_out_of_sync = 0;
  std::uint64_t buckets_unavailable = 0;
  std::uint64_t buckets_damaged = 0;
};

struct ClusterFacts {
  ClusterView active;
  bool is_changing = false;  ///< A pending state is not active yet.
  std::vector<NodeFacts> nodes;
  /// Of one replica of each distribution bucket (BucketCensus); empty: not asked for.
  std::vector<std::uint64_t> bucket_bytes = {};
  /// controller.groups_out_max, and the shares of nodes below which the cluster is down.
  std::size_t groups_out_max = 1;
  double storage_up_ratio_min = 0;
  double distributors_up_ratio_min = 0;

  /// What was found by asking nodes about this very change, and speaks against it.
  std::vector<std::string> objections = {};
  /// The name under which the process at an address that is added or replaced was asked; empty: it was not asked.
  std::string asked_as = {};

  const NodeFacts* find(NodeId id) const;
};

/// Why it is not safe to stop all of `nodes` now, one line a reason; empty: it is safe. A pure function.
///
/// Storage nodes: every bucket has all its replicas in sync (so say all distributors, for the active state) except
/// those on nodes in maintenance, keeps at least one of them elsewhere on a node that is up, and nodes of no more than
/// `groups_out_max` groups are away. Without groups each node counts as one. A node that holds nothing may always go.
/// Distributors: another one is up. The cluster would not be down by its limits.
std::vector<std::string> why_not_stop(const ClusterFacts& facts, const std::vector<NodeId>& nodes);

/// Why these storage nodes may not leave the cluster for good: they have to be retired, and to hold nothing.
std::vector<std::string> why_not_remove(const ClusterFacts& facts, const std::vector<NodeId>& nodes);

/// Why what a storage node that is away holds may not be given up: other buckets may be there only.
std::vector<std::string> why_not_forget(const ClusterFacts& facts);

/// Why it is not sure that every bucket has as many replicas as are wanted in sync: all storage nodes have to be there,
/// or one that nobody has reported might be on the others.
std::vector<std::string> why_not_in_sync(const ClusterFacts& facts);

/// Why data may not be taken off storage nodes, `after` being the cluster without: the others have to be enough for the
/// redundancy.
std::vector<std::string> why_not_drain(const ClusterView& after);

}  // namespace fjord::fleetcontroller
