#include "fjord/library/detail/node_progress.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string_view>

namespace fjord {
namespace {

/// State of the nodes after the change; empty: the change does not set one, or the node may take another.
std::string_view state_after(NodeAction action) {
  switch (action) {
    case NodeAction::Maintenance:
      return "maintenance";
    case NodeAction::Retire:
      return "retired";
    case NodeAction::Down:
      return "down";
    default:
      return {};
  }
}

/// True if a cluster state in force has the change. A change that sets the state that the nodes have already makes no
/// new cluster state.
bool is_in_state(const rpc::GetStatusReply& status, const NodeChange& change, const NodePlan& plan) {
  if (change.action == NodeAction::Up || status.info.state_version > plan.state_version) return true;
  const std::string_view wanted = state_after(change.action);
  return !wanted.empty() && std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](const std::string& name) {
    return std::any_of(status.nodes.begin(), status.nodes.end(),
                       [&](const rpc::NodeStatus& node) { return node.node == name && node.state == wanted; });
  });
}

/// True if the change takes nodes out of service. Then buckets that cannot be served are not counted as left to do,
/// because the change does not make them available.
bool takes_nodes_out(NodeAction action) {
  return action == NodeAction::Maintenance || action == NodeAction::Retire || action == NodeAction::Down ||
         action == NodeAction::Remove;
}

/// Returns the nodes that a change brings into the cluster and that are not up yet, with the reasons.
std::vector<std::string> not_up_yet(const rpc::GetStatusReply& status, const NodeChange& change, const NodePlan& plan) {
  std::vector<std::string> names;
  if (change.action != NodeAction::Add && change.action != NodeAction::Replace) return names;
  for (const rpc::NodeStatus& node : status.nodes) {
    const bool is_changed = std::find(plan.nodes.begin(), plan.nodes.end(), node.node) != plan.nodes.end();
    if (!is_changed || node.state == "up") continue;
    names.push_back(fmt::format("{}: {}", node.node, node.reason.empty() ? node.state : node.reason));
  }
  return names;
}

}  // namespace

std::string to_string(const NodeChangeProgress& left) {
  if (!left.is_known) return "no answer";
  if (!left.waits_for.empty()) return fmt::format("waits for {}", fmt::join(left.waits_for, ", "));
  if (!left.is_in_force) return "the new state is on its way";
  return fmt::format("{} buckets left", left.buckets_left);
}

NodeChangeProgress progress_of(const rpc::GetStatusReply& status, const NodeChange& change, const NodePlan& plan,
                               std::uint64_t& most) {
  NodeChangeProgress left;
  left.is_known = true;
  left.waits_for = not_up_yet(status, change, plan);
  left.is_in_force = status.info.pending_state.empty() && left.waits_for.empty() && is_in_state(status, change, plan);
  for (const rpc::NodeStatus& node : status.nodes) {
    if (node.state == "up" && node.last.state_version != status.info.state_version) left.is_in_force = false;
    if (node.node.starts_with("distributor.") && node.state == "up") {
      left.buckets_left += node.last.buckets_out_of_sync;
      if (!takes_nodes_out(change.action)) left.buckets_left += node.last.buckets_unavailable;
    }
    const bool is_emptied = change.action == NodeAction::Retire &&
                            std::find(plan.nodes.begin(), plan.nodes.end(), node.node) != plan.nodes.end();
    if (is_emptied) left.buckets_left += node.last.buckets;
  }
  most = std::max(most, left.buckets_left);
  if (most != 0) left.fraction_done = 1 - static_cast<double>(left.buckets_left) / static_cast<double>(most);
  return left;
}

}  // namespace fjord
