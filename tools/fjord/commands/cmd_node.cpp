#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "fjord/library/detail/cluster_health.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using rpc::NodeAction;
using SteadyClock = std::chrono::steady_clock;

void add_list(JsonText& json, const char* name, const std::vector<std::string>& list) {
  json.key(name).begin_array();
  for (const std::string& text : list) json.text(text);
  json.end_array();
}

std::string as_json(const rpc::ChangeNodesReply& reply, bool dry_run) {
  JsonText json;
  json.begin_object().key("done").boolean(reply.refusals.empty() && !dry_run);
  add_list(json, "nodes", reply.nodes);
  add_list(json, "refusals", reply.refusals);
  add_list(json, "warnings", reply.warnings);
  json.key("state_version").number(reply.state_version).key("plan").begin_object();
  json.key("buckets_total").number(reply.plan.buckets_total).key("buckets_moved").number(reply.plan.buckets_moved);
  json.key("replicas_moved").number(reply.plan.replicas_moved).key("bytes").number(reply.plan.bytes);
  json.key("duration_s").number(reply.plan.duration_s).end_object().end_object();
  return json.str() + "\n";
}

std::string plan_text(const rpc::MovementPlan& plan) {
  std::string text =
      fmt::format("moves {} replicas of {} of {} buckets, about {:.1f} MiB, about {} s\n", plan.replicas_moved,
                  plan.buckets_moved, plan.buckets_total, static_cast<double>(plan.bytes) / (1 << 20), plan.duration_s);
  for (const std::string& note : plan.notes) text += "  " + note + "\n";
  return text;
}

/// The remaining work of a change.
struct Left {
  bool is_in_force = false;
  std::uint64_t buckets = 0;
  std::string text() const {
    return is_in_force ? fmt::format("{} buckets left", buckets) : std::string("the new state is on its way");
  }
};

Left left_of(const rpc::GetStatusReply& status, NodeAction action, const std::vector<std::string>& nodes,
             std::uint64_t decided_at) {
  Left left;
  const bool changes_state = action != NodeAction::Up;
  left.is_in_force = status.info.pending_state.empty() && (!changes_state || status.info.state_version > decided_at);
  for (const rpc::NodeStatus& node : status.nodes) {
    if (node.state == "up" && node.last.state_version != status.info.state_version) left.is_in_force = false;
    if (node.node.starts_with("distributor.") && node.state == "up") {
      left.buckets += node.last.buckets_out_of_sync + node.last.buckets_unavailable;
    }
    const bool is_emptied =
        action == NodeAction::Retire && std::find(nodes.begin(), nodes.end(), node.node) != nodes.end();
    if (is_emptied) left.buckets += node.last.buckets;
  }
  return left;
}

/// Waits until the change is in force and no bucket is left to move. Shows progress on standard error.
int wait_for(Connection& connection, const NodeArgs& args, const rpc::ChangeNodesReply& change) {
  const auto begin = SteadyClock::now();
  const auto deadline = begin + std::chrono::duration<double>(args.wait_s);
  std::uint64_t most = 0;
  auto shown_at = begin;
  for (;;) {
    const auto status = ask_cluster(connection, rpc::GetStatus{}, args.common.timeout());
    std::string text = "no answer";
    if (status) {
      const Left left = left_of(*status, args.action, change.nodes, change.state_version);
      if (left.is_in_force && left.buckets == 0) return kOk;
      most = std::max(most, left.buckets);
      text = left.text();
      const double done = most == 0 ? 0 : 1 - static_cast<double>(left.buckets) / static_cast<double>(most);
      const double spent = std::chrono::duration<double>(SteadyClock::now() - begin).count();
      if (done > 0.02) text += fmt::format(", {:.0f} %, about {:.0f} s left", done * 100, spent / done - spent);
    }
    const auto now = SteadyClock::now();
    if (now - shown_at >= std::chrono::seconds(2)) {
      complain(text);
      shown_at = now;
    }
    if (now >= deadline) return report(Status(StatusCode::Timeout, fmt::format("after {} s: {}", args.wait_s, text)));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

std::string list_text(const rpc::GetStatusReply& status) {
  std::string text = fmt::format("{:<16} {:<22} {:<12} {:<12} {:>8} {:>8} {:>12} {:>14}  {}\n", "NODE", "ADDRESS",
                                 "STATE", "GROUP", "CAPACITY", "BUCKETS", "DOCUMENTS", "BYTES", "WANTED");
  for (const rpc::NodeStatus& node : status.nodes) {
    std::string notes = node.wanted;
    const auto note = [&](const std::string& more) { notes += (notes.empty() || more.empty() ? "" : "; ") + more; };
    note(node.reason);
    note(node.slow.empty() ? "" : "slow: " + node.slow);
    text += fmt::format("{:<16} {:<22} {:<12} {:<12} {:>8} {:>8} {:>12} {:>14}  {}\n", node.node, node.address,
                        node.state, node.group.empty() ? "-" : node.group, node.capacity.empty() ? "-" : node.capacity,
                        node.last.buckets, node.last.documents, node.last.bytes, notes);
  }
  return text;
}

std::string list_json(const rpc::GetStatusReply& status) {
  JsonText json;
  json.begin_array();
  for (const rpc::NodeStatus& node : status.nodes) {
    json.begin_object().key("node").text(node.node).key("address").text(node.address).key("state").text(node.state);
    json.key("group").text(node.group).key("capacity").text(node.capacity).key("wanted").text(node.wanted);
    json.key("reason").text(node.reason).key("slow").text(node.slow).key("buckets").number(node.last.buckets);
    json.key("documents").number(node.last.documents).key("bytes").number(node.last.bytes);
    json.key("config_version").number(node.last.config_version).end_object();
  }
  json.end_array();
  return json.str() + "\n";
}

}  // namespace

int run_node(const NodeArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  rpc::ChangeNodes request;
  request.action = args.action;
  request.nodes = args.nodes;
  request.address = args.address;
  request.group = args.group;
  request.capacity = args.capacity;
  request.balance_to = args.balance_to;
  request.reason = args.reason;
  request.who = who_am_i();
  request.dry_run = args.dry_run;
  request.force = args.force;
  const auto reply = change_nodes(**connection, std::move(request), args.common.timeout());
  if (!reply) return report(reply.error());
  for (const std::string& warning : reply->warnings) complain("warning: " + warning);
  if (args.common.json()) {
    print(as_json(*reply, args.dry_run));
  } else if (!reply->refusals.empty()) {
    for (const std::string& refusal : reply->refusals) print_line("no: " + refusal);
  } else if (args.action == NodeAction::Stop) {
    print_line("yes: nothing is lost or unavailable without " + fmt::format("{}", fmt::join(reply->nodes, ", ")));
  } else {
    print_line(fmt::format("{}{}", args.dry_run ? "would change " : "", fmt::join(reply->nodes, ", ")));
    print(plan_text(reply->plan));
  }
  if (!reply->refusals.empty()) return kRefused;
  if (args.wait_s > 0 && !args.dry_run && args.action != NodeAction::Stop) return wait_for(**connection, args, *reply);
  return kOk;
}

int run_node_list(const Common& common) {
  auto connection = connect_to(common);
  if (!connection) return report(connection.error());
  const auto status = ask_cluster(**connection, rpc::GetStatus{}, common.timeout());
  if (!status) return report(status.error());
  print(common.json() ? list_json(*status) : list_text(*status));
  return kOk;
}

}  // namespace fjord::cli
