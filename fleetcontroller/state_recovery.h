#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster_record.h"
#include "fjord/common/scheduler.h"
#include "fjord/rpc/transport.h"

/// Recovery of a fleet controller's lost records from the knowledge of nodes. docs/design/0005-cluster-that-changes.md,
/// "Records that are lost", explains why this is safe.
namespace fjord::fleetcontroller {

/// The answer of one node.
struct KnownByNode {
  rpc::Address address;
  Result<rpc::GetClusterInfoReply> reply;
};
/// Answers by node name, "storage.2".
using KnownByNodes = std::map<std::string, KnownByNode>;

/// Asks these nodes for all that they know, and then the further nodes in the newest state among the answers. Calls
/// `done` once with all answers. Confined to `executor`.
void ask_what_nodes_know(const std::map<std::string, rpc::Address>& nodes, rpc::Transport& transport,
                         Executor& executor, Duration timeout, std::function<void(KnownByNodes)> done);

/// The records computed from the answers of nodes.
struct RecoveredRecords {
  rpc::RecoverStateReply reply;  ///< With an error status or refusals, `cluster` and `schemas` are empty.
  ClusterRecord cluster;
  SchemaRecord schemas;
  /// The number of the cluster, without the folders: nodes tell these with their answers to polls.
  IdentityRecord identity;
  std::uint64_t time_limit_us = 0;  ///< A time above all granted timestamps, in microseconds since 1970.
};

/// Distance of the next state's version from the highest known one. Nodes that do not answer may know higher versions.
inline constexpr std::uint64_t kVersionGap = 1000;

/// Computes the records from the answers. A pure function. The newest cluster state that a node has in use stays
/// active, so that nothing changes for nodes and clients. The next state gets a version above all that any node may
/// know. `store_term` is the term in which this controller leads. The published terms continue above the highest term
/// that a node has seen.
///
/// Errors in reply.status: NotFound if no node knows a cluster state; Corruption if the answers contradict each other.
/// Refusals, unless request.force: a node of that state does not answer and may know a newer one.
RecoveredRecords recover_records(const KnownByNodes& known, const rpc::RecoverState& request, std::uint64_t store_term,
                                 std::int64_t unix_us);

}  // namespace fjord::fleetcontroller
