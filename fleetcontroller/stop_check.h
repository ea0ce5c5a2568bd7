#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "state_generator.h"

namespace fjord::fleetcontroller {

/// The controller's knowledge of one node at the time of a request.
struct NodeFacts {
  NodeId id;
  NodeState state = NodeState::Down;  ///< State in the active cluster state.
  WantedState wanted = {};
  bool is_fresh = false;            ///< The node answered the last polls.
  std::uint64_t state_version = 0;  ///< Cluster state to which the numbers below belong.
  std::uint64_t buckets = 0;
  std::uint64_t bytes = 0;
  std::uint64_t buckets_out_of_sync = 0;
  std::uint64_t buckets_unavailable = 0;
  std::uint64_t buckets_collecting = 0;
  std::uint64_t buckets_damaged = 0;
};

struct ClusterFacts {
  ClusterView active;
  bool is_changing = false;  ///< A pending state is not active yet.
  std::vector<NodeFacts> nodes;
  /// Bytes of one replica of each distribution bucket (BucketSizes); empty: not counted.
  std::vector<std::uint64_t> bucket_bytes = {};
  std::size_t groups_out_max = 1;        ///< controller.groups_out_max.
  double storage_up_ratio_min = 0;       ///< Share of storage nodes below which the cluster is down.
  double distributors_up_ratio_min = 0;  ///< Share of distributors below which the cluster is down.

  /// Reasons against this change that nodes reported when they were asked (ask_nodes()).
  std::vector<std::string> objections = {};
  /// Node name with which the process at a new address was asked (add, replace); empty: it was not asked.
  std::string asked_as = {};

  const NodeFacts* find(NodeId id) const;
};

/// Returns the reasons why it is not safe to stop all of `nodes`, one line each; empty: it is safe. A pure function.
///
/// Conditions for storage nodes:
/// - All distributors report for the active state that every bucket has its replicas in sync, except those on nodes in
///   maintenance.
/// - Every bucket keeps at least one replica on another node that is up.
/// - Afterwards nodes of at most `groups_out_max` groups are away. Without groups each node counts as one.
///
/// A node that holds no buckets may always stop. Condition for distributors: another distributor is up. For both types:
/// enough nodes stay up that the cluster is not down by its limits.
std::vector<std::string> why_not_stop(const ClusterFacts& facts, const std::vector<NodeId>& nodes);

/// Returns the reasons why these storage nodes may not leave the cluster for good. They have to be retired or wanted
/// down, and to hold no buckets.
std::vector<std::string> why_not_remove(const ClusterFacts& facts, const std::vector<NodeId>& nodes);

/// Returns the reasons why the content of a storage node that is away may not be given up: a distributor has buckets
/// that cannot be served and may be on that node only.
std::vector<std::string> why_not_forget(const ClusterFacts& facts);

/// Returns the reasons why it is not certain that every bucket has the wanted number of in-sync replicas. All storage
/// nodes have to be there, because an absent one may hold a bucket that no other node has reported.
std::vector<std::string> why_not_in_sync(const ClusterFacts& facts);

/// Returns the reasons why storage nodes may not be emptied. `after` is the cluster without them; its nodes have to be
/// enough for the redundancy.
std::vector<std::string> why_not_drain(const ClusterView& after);

}  // namespace fjord::fleetcontroller
