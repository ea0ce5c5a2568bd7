#include <fmt/format.h>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

std::string recovered_json(const rpc::RecoverStateReply& reply, bool is_done) {
  JsonText json;
  json.begin_object().key("done").boolean(is_done);
  const auto add = [&](const char* name, const std::vector<std::string>& lines) {
    json.key(name).begin_array();
    for (const std::string& line : lines) json.text(line);
    json.end_array();
  };
  add("found", reply.found);
  add("refusals", reply.refusals);
  add("warnings", reply.warnings);
  json.key("state").text(reply.state).key("distribution").text(reply.distribution);
  json.key("state_version").number(reply.state_version).key("next_version").number(reply.next_version);
  json.key("term").number(reply.term).key("schema_version").number(reply.schema_version);
  json.key("schemas").number(reply.schemas).key("config_version").number(reply.config_version);
  json.key("settings").number(reply.settings).end_object();
  return json.str();
}

std::string recovered_text(const rpc::RecoverStateReply& reply, bool is_done) {
  std::string text;
  for (const std::string& line : reply.found) text += line + "\n";
  for (const std::string& line : reply.warnings) text += "warning: " + line + "\n";
  for (const std::string& line : reply.refusals) text += "no: " + line + "\n";
  if (!reply.refusals.empty()) return text;
  text += fmt::format("{} cluster state {} of term {} ({}; {}), {} schemas of version {}, {} settings of version {}\n",
                      is_done ? "recovered" : "would recover", reply.state_version, reply.term, reply.state,
                      reply.distribution, reply.schemas, reply.schema_version, reply.settings, reply.config_version);
  return text + fmt::format("the next cluster state has version {} or more\n", reply.next_version);
}

}  // namespace

int run_state_recover(const StateArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const rpc::RecoverState request{.dry_run = args.dry_run, .force = args.force, .who = who_am_i()};
  const auto reply = args.controller.empty() ? ask_cluster(**connection, request, args.common.timeout())
                                             : ask_node(**connection, args.controller, request, args.common.timeout());
  if (!reply) return report(reply.error());
  const bool is_done = reply->refusals.empty() && !args.dry_run;
  if (args.common.json()) {
    print_line(recovered_json(*reply, is_done));
  } else {
    print(recovered_text(*reply, is_done));
  }
  return reply->refusals.empty() ? kOk : kRefused;
}

}  // namespace fjord::cli
