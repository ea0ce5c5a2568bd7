#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/common/clock.h"

namespace fjord::fleetcontroller {

/// How far one node has followed.
struct NodeProgress {
  NodeId id;
  std::uint64_t prepared_version = 0;  ///< The highest state, pending or active, that it has acknowledged.
  MonotonicTime last_heard;            ///< The last answer, or when the controller was elected if that was later.
  bool is_gone = false;                ///< As NodeReport::is_gone.
};

struct PublicationLimits {
  Duration lease{};
  Duration pending_max{};
};

/// Whether a pending state may become active. Empty: yes; else what it waits for. Pure.
///
/// Each node that is up in the active state has acknowledged it, or has been silent for longer than the lease: then it
/// serves no read on its own word. A storage node never does, so one that is gone and is taken down is not waited for;
/// a distributor is, since a refusal may come from something between. A node that answers and acknowledges nothing is
/// waited for until `pending_max`, and then only if the pending state takes it down
/// (docs/design/0005-cluster-that-changes.md).
std::string why_not_yet(const ClusterState& active, const ClusterState& pending, const std::vector<NodeProgress>& nodes,
                        MonotonicTime pending_since, const PublicationLimits& limits, MonotonicTime now);

}  // namespace fjord::fleetcontroller
