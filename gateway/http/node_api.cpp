// Changes of nodes: below /cluster/v1/nodes.

#include <fmt/format.h>
#include <optional>
#include <utility>

#include "fjord/library/admin.h"
#include "fjord/library/node_action.h"
#include "http/event_stream.h"
#include "http/json_shape.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

constexpr Duration kNoEnd = seconds(1'000'000);

Result<NodeAction> action_of(const std::string& where, const std::string& name) {
  auto action = node_action_of(name);
  return action ? action : Result<NodeAction>(action.error().with_context(where));
}

void write_plan(const NodePlan& plan, JsonText& json) {
  json.begin_object().member("done", plan.done).member("refusals", plan.refusals).member("warnings", plan.warnings);
  json.member("nodes", plan.nodes).member("state_version", plan.state_version);
  json.member("buckets_total", plan.buckets_total).member("buckets_moved", plan.buckets_moved);
  json.member("replicas_moved", plan.replicas_moved).member("bytes_moved", plan.bytes_moved);
  json.member("duration_seconds", plan.duration_seconds).member("notes", plan.notes).end_object();
}

Status change_nodes(Client& client, const std::string& body, JsonText& json) {
  std::string action;
  NodeChange change;
  FJORD_TRY(read_json(body, JsonShape()
                                .text("action", action)
                                .texts("nodes", change.nodes)
                                .text("address", change.address)
                                .text("group", change.group)
                                .text("capacity", change.capacity)
                                .text("balance_to", change.balance_to)
                                .text("reason", change.reason)
                                .flag("dry_run", change.dry_run)
                                .flag("force", change.force)
                                .required("action")));
  FJORD_TRY_ASSIGN(change.action, action_of("the body: \"action\"", action));
  FJORD_TRY_ASSIGN(const NodePlan plan, client.admin().change_nodes(change));
  write_plan(plan, json);
  return Status::ok();
}

std::string text_of(const NodeChangeProgress& progress) {
  JsonText json;
  json.begin_object().member("known", progress.is_known).member("in_force", progress.is_in_force);
  json.member("waits_for", progress.waits_for).member("buckets_left", progress.buckets_left);
  if (progress.fraction_done < 0) {
    json.key("fraction_done").null();
  } else {
    json.member("fraction_done", progress.fraction_done);
  }
  json.known_seconds("seconds_left", progress.left == Duration(0) ? Duration(-1) : progress.left).end_object();
  return json.str();
}

struct AskedChange {
  NodeChange change;
  NodePlan plan;
  Duration heartbeat{0};
};

Result<AskedChange> read_change(const ApiCall& call) {
  AskedChange asked;
  FJORD_TRY_ASSIGN(const std::string action, call.required("action"));
  FJORD_TRY_ASSIGN(asked.change.action, action_of("request property 'action'", action));
  asked.plan.nodes = call.words("nodes");
  FJORD_TRY_ASSIGN(asked.plan.state_version, call.count("state_version", 0, 0, INT64_MAX));
  FJORD_TRY_ASSIGN(asked.heartbeat, call.duration("heartbeat", seconds(5)));
  return asked;
}

/// Sends what is left of a change until it is done.
void follow_change(Client& client, const ApiCall& call, const HttpReply& reply) {
  const auto asked = read_change(call);
  if (!asked) return reply(error_answer(call.request, asked.error()));
  EventStream events(reply, asked->heartbeat);
  const Status status = client.admin().wait_for(
      asked->change, asked->plan, kNoEnd,
      [&](const NodeChangeProgress& progress) { events.send("progress", text_of(progress)); }, stop_of(reply));
  if (status) {
    NodeChangeProgress done;
    done.is_known = done.is_in_force = true;
    done.fraction_done = 1;
    events.send("end", text_of(done));
  } else {
    events.send("failed", error_text(status));
  }
  events.end();
}

}  // namespace

void add_node_routes(RouteTable& routes, Client& client) {
  routes.add_waiting("POST", "/cluster/v1/nodes", {}, [&client](const ApiCall& call, JsonText& json) {
    return change_nodes(client, call.request.body, json);
  });
  routes.add_streaming("GET", "/cluster/v1/nodes/progress", {"action", "nodes", "state_version", "heartbeat"},
                       [&client](const ApiCall& call, const HttpReply& reply) { follow_change(client, call, reply); });
}

}  // namespace fjord::gateway
