// Handlers of /cluster/v1: status, nodes, state.

#include <algorithm>
#include <fmt/format.h>

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

void write_status(const ClusterStatus& status, JsonText& json) {
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
  json.end_array().end_object();
}

Status list_nodes(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const ClusterStatus status, client.admin().status());
  json.begin_object().key("nodes").begin_array();
  for (const NodeInfo& node : status.nodes) write_node(node, json);
  json.end_array().end_object();
  return Status::ok();
}

Status get_node(Client& client, const std::string& name, JsonText& json) {
  FJORD_TRY_ASSIGN(const ClusterStatus status, client.admin().status());
  const auto found =
      std::find_if(status.nodes.begin(), status.nodes.end(), [&](const NodeInfo& node) { return node.name == name; });
  if (found == status.nodes.end()) {
    return {StatusCode::NotFound, fmt::format("the cluster has no node \"{}\"", name)};
  }
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

void add_cluster_routes(RouteTable& routes, Client& client) {
  routes.add_waiting("GET", "/cluster/v1/status", {}, [&client](const ApiCall&, JsonText& json) -> Status {
    FJORD_TRY_ASSIGN(const ClusterStatus status, client.admin().status());
    write_status(status, json);
    return Status::ok();
  });
  routes.add_waiting("GET", "/cluster/v1/nodes", {},
                     [&client](const ApiCall&, JsonText& json) { return list_nodes(client, json); });
  routes.add_waiting("GET", "/cluster/v1/nodes/{node}", {}, [&client](const ApiCall& call, JsonText& json) {
    return get_node(client, call.part("node"), json);
  });
  routes.add_waiting("GET", "/cluster/v1/state", {},
                     [&client](const ApiCall&, JsonText& json) { return get_state(client, json); });
  routes.add_waiting("GET", "/cluster/v1/state/history", {"max"},
                     [&client](const ApiCall& call, JsonText& json) { return get_history(client, call, json); });
}

}  // namespace fjord::gateway
