#include <fmt/format.h>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

void add_change(JsonText& json, const rpc::StateChange& change) {
  json.begin_object().key("version").number(change.version).key("term").number(change.term);
  json.key("unix_us").integer(change.unix_us).key("active_unix_us").integer(change.active_unix_us);
  json.key("what").text(change.what).key("why").text(change.why).key("who").text(change.who).end_object();
}

}  // namespace

int run_state_log(const StateArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto reply = ask_cluster(**connection, rpc::GetHistory{.max = args.lines}, args.common.timeout());
  if (!reply) return report(reply.error());
  for (const rpc::StateChange& change : reply->changes) {
    if (args.common.json()) {
      JsonText json;
      add_change(json, change);
      print_line(json.str());
    } else {
      print_line(fmt::format("{}  {:>6}  {}{}  [{}]", time_text(change.unix_us), change.version, change.what,
                             change.why.empty() ? "" : " -- " + change.why, change.who));
    }
  }
  return kOk;
}

int run_state_show(const StateArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto reply = ask_cluster(**connection, rpc::GetHistory{.max = 1}, args.common.timeout());
  if (!reply) return report(reply.error());
  const rpc::ClusterInfo& info = reply->info;
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("state").text(info.state).key("distribution").text(info.distribution);
    json.key("term").number(reply->term).key("leader").text(reply->leader);
    json.key("pending_state").text(info.pending_state).key("pending_distribution").text(info.pending_distribution);
    json.key("waits_for").text(reply->waits_for).key("config_version").number(info.config_version);
    json.key("schema_version").number(info.schema_version).end_object();
    print_line(json.str());
    return kOk;
  }
  print_line("state         " + info.state);
  print_line("distribution  " + info.distribution);
  if (!info.pending_state.empty()) {
    print_line("pending       " + info.pending_state);
    if (info.pending_distribution != info.distribution) print_line("  with        " + info.pending_distribution);
    if (!reply->waits_for.empty()) print_line("  " + reply->waits_for);
  }
  print_line(fmt::format("leader        {}, term {}", reply->leader, reply->term));
  print_line(fmt::format("configuration version {}, schemas version {}", info.config_version, info.schema_version));
  return kOk;
}

}  // namespace fjord::cli
