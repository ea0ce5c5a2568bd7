#pragma once

#include <string>
#include <vector>

#include "fjord/common/metrics.h"
#include "fjord/common/runtime.h"
#include "node_poller.h"
#include "stop_check.h"

namespace fjord::fleetcontroller {

/// Publishes cluster states: generates the next one from the nodes' answers, writes it as pending, and makes it active
/// when all nodes have acknowledged it. It also publishes the marks of slow nodes.
///
/// Threading: confined to the controller's executor.
class Publisher {
 public:
  Publisher(std::string name, Runtime& runtime, Candidate& candidate, LeaderRecords& records,
            const ControllerSettings& settings, NodePoller& poller);

  /// Starts the times for which this leader waits for the answers of nodes.
  void begin();
  /// Tells the metrics that this controller knows nothing of the cluster any more.
  void end_term();
  /// Shows the nodes and the versions in the metrics.
  void count_nodes();
  /// Publishes a new state, or makes the pending one active, if that is due and no write is in flight.
  void update_state();
  void update_slow_nodes();
  /// Returns the nodes for which the pending state waits; empty: there is none.
  std::string waits_for() const;
  /// Returns the knowledge of the cluster on which decisions about changes are based.
  ClusterFacts facts() const;

 private:
  /// Returns the number of in-sync replicas that every bucket has under the active state. 0: not known, or not more
  /// than the state assures already.
  unsigned replicas_in_sync(const DistributionConfig& wanted) const;
  /// Returns the reports of all nodes, with those marked that have lost their data by `identity`.
  std::vector<NodeReport> reports(const IdentityRecord& identity) const;
  /// Returns the identities as they should be recorded now: the number of a new cluster, the folders that nodes name,
  /// and lost folders whose data is complete again.
  IdentityRecord next_identity() const;
  /// Returns true if every bucket has its replicas in sync under the active state, which has all marks of lost data.
  bool is_complete(const IdentityRecord& identity) const;
  void make_pending(ClusterState next, const StateReasons& reasons, const std::string& cluster_reason);
  HistoryEntry entry_for(const ClusterState& next, const StateReasons& reasons,
                         const std::string& cluster_reason) const;
  void activate();

  const std::string name_;
  const Clock& clock_;
  Candidate& candidate_;
  LeaderRecords& records_;
  const ControllerSettings& settings_;
  NodePoller& poller_;
  Counter& versions_;
  Gauge& nodes_up_;
  Gauge& slow_nodes_;
  Gauge& state_version_;
  Gauge& config_version_;

  const std::uint64_t drawn_id_;  // Number of the cluster if this controller is the first of a new one.
  MonotonicTime elected_at_;
  MonotonicTime pending_since_;
  std::vector<HistoryEntry> slow_history_;  // Lines about slow nodes that are not stored yet.
};

}  // namespace fjord::fleetcontroller
