#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster_record.h"
#include "fjord/common/scheduler.h"
#include "fjord/rpc/transport.h"

/// A fleet controller whose records are lost takes over what nodes know. docs/design/0005-cluster-that-changes.md,
/// "Records that are lost", says why this is safe.
namespace fjord::fleetcontroller {

/// What one node answered.
struct KnownByNode {
  rpc::Address address;
  Result<rpc::GetClusterInfoReply> reply;
};
/// By node name, "storage.2".
using KnownByNodes = std::map<std::string, KnownByNode>;

/// Asks these nodes what they know, then all others that the newest state among the answers names; `done` is called
/// once with everything. Confined to `executor`.
void ask_what_nodes_know(const std::map<std::string, rpc::Address>& nodes, rpc::Transport& transport,
                         Executor& executor, Duration timeout, std::function<void(KnownByNodes)> done);

/// The records that follow from what nodes know.
struct RecoveredRecords {
  rpc::RecoverStateReply reply;  ///< With a status that is not OK, or refusals in force, the rest is empty.
  ClusterRecord cluster;
  SchemaRecord schemas;
  std::uint64_t time_limit_us = 0;  ///< No timestamp above it has been granted.
};

/// How far the version of the next state is above all that are known: nodes that do not answer may know some more.
inline constexpr std::uint64_t kVersionGap = 1000;

/// A pure function. The newest cluster state that a node has in use stays active, so that nothing changes for nodes and
/// clients; the next one has a version above all that anybody may know. `store_term` is the term in which this
/// controller leads; the published terms continue above the highest that a node has heard of.
///
/// Errors in the reply's status: NotFound if no node knows a cluster state; Corruption if what they know contradicts.
/// Refusals, unless request.force: nodes of that state that do not answer may know a newer one.
RecoveredRecords recover_records(const KnownByNodes& known, const rpc::RecoverState& request, std::uint64_t store_term,
                                 std::int64_t unix_us);

}  // namespace fjord::fleetcontroller
