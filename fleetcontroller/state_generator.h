#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// The state that an operator has set for a node. It applies while it is lower than the node's own state.
struct WantedState {
  NodeState state = NodeState::Up;
  std::string reason;
  std::string who;
  std::int64_t since_unix_us = 0;
  friend bool operator==(const WantedState&, const WantedState&) = default;
};

/// Returns the info with this state and defaults for the rest.
inline NodeStateInfo plain(NodeState state) {
  NodeStateInfo info;
  info.state = state;
  return info;
}

/// The controller's knowledge of one node; node_monitor.h keeps it.
struct NodeReport {
  NodeId id;
  bool answered = false;      ///< The node has answered a poll of this leader.
  MonotonicTime last_answer;  ///< Time of the node's last answer.
  std::uint64_t incarnation = 0;
  std::uint64_t published_incarnation = 0;  ///< Incarnation on which the published state is based.
  NodeStateInfo reported = plain(NodeState::Down);
  /// The node's machine has refused connections for refused_after since its last answer, so its process has ended.
  bool is_gone = false;
  /// Start of the Stopping state, for a node that reports it or was silent after it.
  MonotonicTime stopping_since;
  MonotonicTime away_since;      ///< For a node that reports Initializing: since when it has not served.
  unsigned crashes = 0;          ///< Number of recent crashes, for flap damping.
  std::string mistaken;          ///< Why the process at the node's address is not this node; empty: it is.
  bool is_removed = false;       ///< Removed from the cluster; not counted in shares of nodes.
  bool is_held_down = false;     ///< Its initialisation failed; it is held down until it reports Up.
  unsigned min_bucket_bits = 0;  ///< Fewest bits of a bucket on the node; 0: no buckets, or not known.
  WantedState wanted;
  std::vector<std::string> features = {};  ///< Names that the node has announced in its last answer, in order.
  /// Incarnations before this one whose acknowledged writes it has (PollReply::kept_from).
  std::vector<std::uint64_t> kept_from = {};
  bool has_lost_data = false;  ///< The node came back without the data that it had (judge_folder()).
};

/// GeneratorOptions::stop_grace of a real controller.
inline constexpr Duration kStopGrace = seconds(5);

/// The limits by which states are generated. By default the rules that only some clusters need are off.
struct GeneratorOptions {
  unsigned distribution_bits = 8;
  Duration down_after{};
  /// Time until which a node that has never answered keeps its state.
  MonotonicTime grace_until;
  /// Time that a silent or stopping storage node is in maintenance, without re-replication, before it is down.
  Duration transition_time{};
  /// The same for a storage node that has said that it stops or starts, if it is longer: a restart moves no data.
  Duration stop_grace{};
  /// Longest maintenance set by an operator. Afterwards the storage node counts as down, so that its buckets are
  /// replicated elsewhere. 0: no limit. Measured by the wall clock, because the record has the time of the request.
  Duration maintenance_max{};
  std::int64_t wall_now_us = 0;
  /// Number of crashes above which a node is down.
  unsigned crashes_max = 1U << 30;
  /// The cluster is down if fewer storage nodes, or fewer distributors, are available.
  unsigned storage_up_min = 0;
  unsigned distributors_up_min = 0;
  /// The cluster is down if a smaller share of the storage nodes, or of the distributors, is available.
  double storage_up_ratio_min = 0;
  double distributors_up_ratio_min = 0;
  /// Share of available storage nodes below which a whole group is taken down. Groups are the leaves of the
  /// distribution's tree; with a single leaf the rule is off.
  double group_up_ratio_min = 0;
  /// Exceptions of the placement; they are in the state while it has `exceptions_bits` distribution bits.
  std::vector<PlacementException> exceptions = {};
  unsigned exceptions_bits = 0;
  /// Read shares; in the state if the exceptions are, and if all serving nodes announce the feature.
  std::vector<ReadShare> read_shares = {};
  /// Number of in-sync replicas observed for every bucket while all storage nodes were there; 0: not observed.
  unsigned replicas_in_sync = 0;
  /// The state in force; null: it is the current state. They differ while the current one is pending. It has to stay
  /// valid while a state is generated.
  const ClusterState* in_force = nullptr;
  /// All buckets are complete on nodes that have not lost their data, or have been filled since.
  bool is_complete = false;
};

/// The reason of each node's state, as text for operators.
using StateReasons = std::map<NodeId, std::string>;

struct GeneratedState {
  ClusterState state;
  bool is_new = false;         ///< The state differs from the current one.
  StateReasons reasons;        ///< Reasons of the nodes that are not simply up.
  std::string cluster_reason;  ///< Why the cluster is down: limit, count and setting; also the state's description.
};

/// Returns the cluster state that should be in force. A pure function. If the state differs from `current`, it has the
/// version `current.version() + 1`; otherwise it is `current` itself.
///
/// - A node has its reported state while it answers within `down_after` and is not gone.
/// - A node is down if it is silent or gone, has crashed too often, or is a storage node that still lists its buckets.
/// - A storage node that is silent or gone, or reports Down, is in maintenance for `transition_time` first.
/// - One that stops, or was not down and lists its buckets after a restart, is so for at least `stop_grace`.
/// - A wanted state applies if it is lower than that. Maintenance that exceeds `maintenance_max` counts as down.
/// - Groups, and then the whole cluster, go down if too few nodes are available.
/// - The number of assured replicas falls at once to the number that a new bucket gets. It rises to `replicas_in_sync`.
/// - The features are those that all serving nodes announce. A node that this leader has not heard yet announces what
///   the current state lists.
/// - A storage node that has lost its data is marked so, whatever its state is. If the mark goes before all buckets are
///   complete, because an operator has accepted the loss, one replica less is assured.
/// - Distribution bits rise to the wanted number when no node has a bucket with fewer bits. They fall at once.
///
/// A node that becomes available, or whose incarnation is not the published one, gets `up_since_version` = the new
/// version. Distributors then ask it for its buckets again (docs/design/0001-first-architecture.md). The state also
/// says under which versions each storage node was not available, and since when its process lives (NodePast).
GeneratedState generate_state(const ClusterState& current, const std::vector<NodeReport>& reports,
                              const DistributionConfig& distribution, const GeneratorOptions& options,
                              MonotonicTime now);

/// Returns a duration as text: "90 s", "25 min", "3.5 h".
std::string duration_text(Duration d);

/// Returns true for the states in which a node serves: up and retired.
bool is_available(NodeState state);

}  // namespace fjord::fleetcontroller
