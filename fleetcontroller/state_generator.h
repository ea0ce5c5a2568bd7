#pragma once

#include <cstdint>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// What the controller knows of one node.
struct NodeReport {
  NodeId id;
  bool answered = false;      ///< Ever, since the controller started.
  MonotonicTime last_answer;  ///< Of the last poll that was answered.
  std::uint64_t incarnation = 0;
  std::uint64_t published_incarnation = 0;  ///< The one that the current state speaks of.
  NodeState reported = NodeState::Down;
};

struct GeneratorOptions {
  unsigned distribution_bits = 8;
  Duration down_after{};
  /// Until then a node that never answered keeps the state it had.
  MonotonicTime grace_until;
};

/// The cluster state that should be in force: a pure function of what is known. Its version is `current.version() + 1`
/// if it says something new, else `current` itself comes back.
///
/// A node is up if it answered within `down_after` and reports itself up. A node that was down or has another
/// incarnation than the published one gets `up_since_version` = the new version: what distributors knew of its buckets
/// no longer counts (docs/design/0001-first-architecture.md).
ClusterState generate_state(const ClusterState& current, const std::vector<NodeReport>& reports,
                            const GeneratorOptions& options, MonotonicTime now);

}  // namespace fjord::fleetcontroller
