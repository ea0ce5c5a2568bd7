// Handlers of /cluster/v1: status, nodes, state.

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <utility>

#include "fjord/library/admin.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

void write_node(const NodeInfo& node, JsonText& json) {
  json.begin_object().member("name", node.name).member("role", node.name.substr(0, node.name.find('.')));
  json.member("address", node.address).member("state", node.state).member("reason", node.reason);
  json.member("wanted", node.wanted).member("group", node.group).member("capacity", node.capacity);
  json.member("slow", node.slow).member("space", node.space).member("space_stage", node.space_stage);
  json.member("buckets", node.buckets).member("documents", node.documents).member("bytes", node.bytes);
  json.member("state_version", node.state_version).member("config_version", node.config_version);
  json.known_seconds("answered_seconds_ago", node.answered_ago);
  json.known_seconds("maintenance_seconds", node.maintenance);
  json.known_seconds("maintenance_seconds_left", node.maintenance_left).end_object();
}

/// Fleet controllers and gateways, which the cluster state does not have.
class OtherProcesses {
 public:
  OtherProcesses(LoadSampler& sampler, std::vector<OtherProcess> others)
      : sampler_(sampler), others_(std::move(others)) {}

  /// Returns them with what was seen of them last; waits up to `patience` for a look that is not old.
  std::vector<NodeInfo> nodes(Duration patience) const {
    const auto seen = sampler_.processes(patience);
    std::vector<NodeInfo> nodes;
    for (const OtherProcess& one : others_) {
      NodeInfo node;
      node.name = one.name;
      node.address = one.address;
      const auto found = seen.find(one.name);
      if (found == seen.end()) {
        node.state = "unknown";
        node.reason = one.http.empty() ? "it has no line http in the configuration file of this gateway" : "";
      } else if (found->second.answers) {
        node.state = "up";
        node.answered_ago = Duration(0);
        node.reason = found->second.leads ? "leads" : "";
      } else {
        node.state = "down";
        node.reason = "its metrics cannot be read at " + one.http;
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

 private:
  LoadSampler& sampler_;
  const std::vector<OtherProcess> others_;
};

constexpr Duration kPatience = seconds(3);

void write_status(const ClusterStatus& status, const std::vector<NodeInfo>& others, JsonText& json) {
  json.begin_object().member("health", to_string(status.health)).member("reasons", status.reasons);
  json.member("notes", status.notes).member("state_version", status.state_version);
  json.member("schema_version", status.schema_version).member("config_version", status.config_version);
  json.member("state", status.state).member("distribution", status.distribution);
  json.key("buckets").begin_object().member("total", status.buckets).member("in_sync", status.buckets_in_sync);
  json.member("out_of_sync", status.buckets_out_of_sync).member("collecting", status.buckets_collecting);
  json.member("unavailable", status.buckets_unavailable).member("damaged", status.buckets_damaged);
  json.member("failing", status.buckets_failing).member("unplaced", status.buckets_unplaced);
  json.member("under_replicated", status.buckets_under_replicated).end_object();
  json.member("document_replicas", status.document_replicas).member("bytes", status.bytes);
  json.member("nodes_without_space", status.nodes_without_space).key("nodes").begin_array();
  for (const NodeInfo& node : status.nodes) write_node(node, json);
  for (const NodeInfo& node : others) write_node(node, json);
  json.end_array().end_object();
}

Result<std::vector<NodeInfo>> all_nodes(Client& client, const OtherProcesses& others) {
  FJORD_TRY_ASSIGN(ClusterStatus status, client.admin().status());
  for (NodeInfo& node : others.nodes(kPatience)) status.nodes.push_back(std::move(node));
  return std::move(status.nodes);
}

Status list_nodes(Client& client, const OtherProcesses& others, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<NodeInfo> nodes, all_nodes(client, others));
  json.begin_object().key("nodes").begin_array();
  for (const NodeInfo& node : nodes) write_node(node, json);
  json.end_array().end_object();
  return Status::ok();
}

Status get_node(Client& client, const OtherProcesses& others, const std::string& name, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<NodeInfo> nodes, all_nodes(client, others));
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NodeInfo& node) { return node.name == name; });
  if (found == nodes.end()) return {StatusCode::NotFound, fmt::format("the cluster has no node \"{}\"", name)};
  write_node(*found, json);
  return Status::ok();
}

Status get_state(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const ClusterStateInfo state, client.admin().state());
  json.begin_object().member("state", state.state).member("distribution", state.distribution);
  json.member("pending_state", state.pending_state).member("pending_distribution", state.pending_distribution);
  json.member("waits_for", state.waits_for).member("leader", state.leader).member("term", state.term);
  json.member("schema_version", state.schema_version).member("config_version", state.config_version).end_object();
  return Status::ok();
}

Status get_history(Client& client, const ApiCall& call, JsonText& json) {
  constexpr std::uint64_t kEntriesMax = 100'000;
  FJORD_TRY_ASSIGN(const std::uint64_t max, call.count("max", 100, 0, kEntriesMax));
  FJORD_TRY_ASSIGN(const std::vector<HistoryEntry> history, client.admin().history(static_cast<std::uint32_t>(max)));
  json.begin_object().key("entries").begin_array();
  for (const HistoryEntry& entry : history) {
    json.begin_object().member("version", entry.version).member("term", entry.term).member("unix_us", entry.unix_us);
    json.member("active_unix_us", entry.active_unix_us).member("what", entry.what).member("why", entry.why);
    json.member("who", entry.who).end_object();
  }
  json.end_array().end_object();
  return Status::ok();
}

}  // namespace

void add_cluster_routes(RouteTable& routes, Client& client, LoadSampler& sampler, std::vector<OtherProcess> processes) {
  const auto others = std::make_shared<const OtherProcesses>(sampler, std::move(processes));
  routes.add_waiting("GET", "/cluster/v1/status", {}, [&client, others](const ApiCall&, JsonText& json) -> Status {
    FJORD_TRY_ASSIGN(const ClusterStatus status, client.admin().status());
    write_status(status, others->nodes(Duration(0)), json);
    return Status::ok();
  });
  routes.add_waiting("GET", "/cluster/v1/nodes", {},
                     [&client, others](const ApiCall&, JsonText& json) { return list_nodes(client, *others, json); });
  routes.add_waiting("GET", "/cluster/v1/nodes/{node}", {}, [&client, others](const ApiCall& call, JsonText& json) {
    return get_node(client, *others, call.part("node"), json);
  });
  routes.add_waiting("GET", "/cluster/v1/state", {},
                     [&client](const ApiCall&, JsonText& json) { return get_state(client, json); });
  routes.add_waiting("GET", "/cluster/v1/state/history", {"max"},
                     [&client](const ApiCall& call, JsonText& json) { return get_history(client, call, json); });
}

}  // namespace fjord::gateway
