#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

std::string recovered_json(const RecoveredState& reply) {
  JsonText json;
  json.begin_object().key("done").boolean(reply.done);
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

std::string recovered_text(const RecoveredState& reply) {
  std::string text;
  for (const std::string& line : reply.found) text += line + "\n";
  for (const std::string& line : reply.warnings) text += "warning: " + line + "\n";
  for (const std::string& line : reply.refusals) text += "no: " + line + "\n";
  if (!reply.refusals.empty()) return text;
  text += fmt::format("{} cluster state {} of term {} ({}; {}), {} schemas of version {}, {} settings of version {}\n",
                      reply.done ? "recovered" : "would recover", reply.state_version, reply.term, reply.state,
                      reply.distribution, reply.schemas, reply.schema_version, reply.settings, reply.config_version);
  return text + fmt::format("the next cluster state has version {} or more\n", reply.next_version);
}

}  // namespace

int run_state_recover(const StateArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    const auto recovered =
        admin.recover_state({.dry_run = args.dry_run, .force = args.force, .controller = args.controller});
    if (!recovered) return report(recovered.error());
    if (args.common.json()) {
      print_line(recovered_json(*recovered));
    } else {
      print(recovered_text(*recovered));
    }
    return static_cast<int>(recovered->refusals.empty() ? kOk : kRefused);
  });
}

}  // namespace fjord::cli
