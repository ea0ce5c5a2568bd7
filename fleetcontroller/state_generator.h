#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// What an operator wants of a node. It takes effect while the node itself reports something better.
struct WantedState {
  NodeState state = NodeState::Up;
  std::string reason;
  std::string who;
  std::int64_t since_unix_us = 0;
  friend bool operator==(const WantedState&, const WantedState&) = default;
};

/// `state`, and the rest as by default.
inline NodeStateInfo plain(NodeState state) {
  NodeStateInfo info;
  info.state = state;
  return info;
}

/// What the controller knows of one node; node_monitor.h keeps it.
struct NodeReport {
  NodeId id;
  bool answered = false;      ///< Ever, since the controller leads.
  MonotonicTime last_answer;  ///< Of the last poll that was answered.
  std::uint64_t incarnation = 0;
  std::uint64_t published_incarnation = 0;  ///< The one that the current state speaks of.
  NodeStateInfo reported = plain(NodeState::Down);
  /// Since its last answer its machine has refused connections for long enough: the process has ended.
  bool is_gone = false;
  /// While it reports Stopping, or is silent after it did: since when.
  MonotonicTime stopping_since;
  unsigned crashes = 0;          ///< Counted by flap damping.
  std::string mistaken;          ///< Why the process that answered last is not this node; empty: it is.
  bool is_removed = false;       ///< From the cluster: it counts in no share of nodes.
  bool is_held_down = false;     ///< Its initialisation went wrong; until it is up.
  unsigned min_bucket_bits = 0;  ///< 0: no buckets, or not known.
  WantedState wanted;
};

/// The limits by which states are generated. The defaults switch the rules off that not every cluster wants.
struct GeneratorOptions {
  unsigned distribution_bits = 8;
  Duration down_after{};
  /// Until then a node that never answered keeps the state it had.
  MonotonicTime grace_until;
  /// A storage node that fell silent or stops is in maintenance for so long before it is down: nothing is copied.
  Duration transition_time{};
  /// A storage node that an operator wants in maintenance for longer counts as down, so that what it holds is copied;
  /// 0: never. By the wall clock, since when it was asked for is in the record.
  Duration maintenance_max{};
  std::int64_t wall_now_us = 0;
  /// A node with more crashes is down.
  unsigned crashes_max = 1U << 30;
  /// With fewer nodes of a type available the cluster is down.
  unsigned storage_up_min = 0;
  unsigned distributors_up_min = 0;
  double storage_up_ratio_min = 0;
  double distributors_up_ratio_min = 0;
  /// A group with a lower share of its storage nodes available is taken down as a whole. Groups are the leaves of the
  /// distribution's tree, if there is more than one.
  double group_up_ratio_min = 0;
  /// In the state while it has `exceptions_bits` distribution bits.
  std::vector<PlacementException> exceptions = {};
  unsigned exceptions_bits = 0;
  /// Every bucket has been seen to have so many replicas in sync, with all storage nodes there. 0: not seen.
  unsigned copies_in_sync = 0;
};

/// Why a node is in its state, for people.
using StateReasons = std::map<NodeId, std::string>;

struct GeneratedState {
  ClusterState state;
  bool is_new = false;   ///< It says something else than the state before.
  StateReasons reasons;  ///< Of nodes that are not plainly up.
  std::string
      cluster_reason;  ///< Of a cluster that is down: the limit, what was counted, the setting. In the state, too.
};

/// The cluster state that should be in force: a pure function of what is known. Its version is `current.version() + 1`
/// if it says something new, else `current` itself comes back.
///
/// - A node is what it reports while it answers within `down_after` and is not gone; a storage node that still lists
/// its buckets, one that
///   crashed too often, and one that is silent is down, after `transition_time` of maintenance in the last case.
/// - A wanted state counts if it is below that; one of maintenance that lasts longer than `maintenance_max` is down.
/// - Groups and then the whole cluster go down if too few nodes are available.
/// - The number of assured copies falls at once with what a new bucket gets, and rises to what was seen in sync.
/// - Distribution bits rise to the wanted number when no node has a bucket with fewer; they fall at once.
///
/// A node that becomes available or has another incarnation than the published one gets `up_since_version` = the new
/// version: what distributors knew of its buckets no longer counts (docs/design/0001-first-architecture.md).
GeneratedState generate_state(const ClusterState& current, const std::vector<NodeReport>& reports,
                              const DistributionConfig& distribution, const GeneratorOptions& options,
                              MonotonicTime now);

/// "90 s", "25 min", "3.5 h".
std::string duration_text(Duration d);

/// True for states in which a node serves: up and retired.
bool is_available(NodeState state);

}  // namespace fjord::fleetcontroller
