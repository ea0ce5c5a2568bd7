#include <algorithm>
#include <fmt/format.h>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "commands/setting_names.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

std::string effective(const rpc::Setting& setting) {
  if (!setting.in_force.empty()) return setting.in_force;
  if (!setting.value.empty()) return setting.value;  // The fleet controller is of an earlier version.
  return setting.default_value.empty() ? "unknown" : setting.default_value;
}

/// Returns the source of the value, which a fleet controller of an earlier version does not report.
std::string source_of(const rpc::Setting& setting) {
  if (!setting.source.empty()) return setting.source;
  return setting.value.empty() ? "no node has said" : "live configuration";
}

std::string bounds(const rpc::Setting& setting) {
  return setting.type == "bool" ? "true or false" : fmt::format("{} to {}", setting.min, setting.max);
}

void add_setting(JsonText& json, const rpc::Setting& setting) {
  json.begin_object().key("name").text(setting.name).key("type").text(setting.type).key("value").text(setting.value);
  json.key("default").text(setting.default_value).key("min").text(setting.min).key("max").text(setting.max);
  json.key("in_force").text(setting.in_force).key("source").text(setting.source).key("elsewhere").begin_array();
  for (const std::string& node : setting.elsewhere) json.text(node);
  json.end_array().key("used_by").text(setting.used_by).key("meaning").text(setting.meaning).end_object();
}

Result<rpc::GetConfigReply> get(const Common& common) {
  FJORD_TRY_ASSIGN(const auto connection, connect_to(common));
  return ask_cluster(*connection, rpc::GetConfig{}, common.timeout());
}

/// Changes the configuration. Each attempt carries the version that it has seen, so that a delayed duplicate has no
/// effect. A change of single settings is retried after a concurrent change. A revert is not, because its meaning can
/// depend on the version.
Result<rpc::ChangeConfigReply> make_change(Connection& connection, Duration timeout, rpc::ChangeConfig request) {
  constexpr int kAttemptsMax = 10;
  const int attempts = request.revert || request.revert_to != 0 ? 1 : kAttemptsMax;
  request.if_version = true;
  for (int attempt = 1;; ++attempt) {
    FJORD_TRY_ASSIGN(const rpc::GetConfigReply seen, ask_cluster(connection, rpc::GetConfig{}, timeout));
    FJORD_TRY(check_setting_names(seen.settings, request.set));
    FJORD_TRY(check_setting_names(seen.settings, request.unset));
    request.version = seen.config_version;
    auto reply = ask_cluster(connection, request, timeout);
    if (reply || reply.error().code() != StatusCode::TestAndSetFailed || attempt == attempts) return reply;
  }
}

int change(const ConfigArgs& args, rpc::ChangeConfig request) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  request.who = who_am_i();
  request.dry_run = args.dry_run;
  const auto reply = make_change(**connection, args.common.timeout(), std::move(request));
  if (!reply) return report(reply.error());
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("config_version").number(reply->config_version).key("changes").begin_array();
    for (const std::string& line : reply->changes) json.text(line);
    json.end_array().end_object();
    print_line(json.str());
  } else {
    for (const std::string& line : reply->changes) print_line(line);
    print_line(fmt::format("configuration version {}{}", reply->config_version,
                           reply->changes.empty() ? ", nothing changed"
                           : args.dry_run         ? ", not changed"
                                                  : ""));
  }
  return kOk;
}

}  // namespace

int run_config_list(const ConfigArgs& args) {
  const auto reply = get(args.common);
  if (!reply) return report(reply.error());
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("config_version").number(reply->config_version).key("settings").begin_array();
    for (const rpc::Setting& setting : reply->settings) add_setting(json, setting);
    json.end_array().key("waiting").begin_array();
    for (const std::string& node : reply->waiting) json.text(node);
    json.end_array().key("errors").begin_array();
    for (const std::string& error : reply->errors) json.text(error);
    json.end_array().end_object();
    print_line(json.str());
    return kOk;
  }
  for (const rpc::Setting& setting : reply->settings) {
    print_line(fmt::format("{:<38} {:<12} {}", setting.name, effective(setting), source_of(setting)));
    for (const std::string& node : setting.elsewhere) print_line("  but " + node);
  }
  print_line(fmt::format("configuration version {}", reply->config_version));
  for (const std::string& node : reply->waiting) print_line("pending: " + node + " does not have it yet");
  for (const std::string& error : reply->errors) print_line("refused: " + error);
  return reply->errors.empty() ? kOk : kPartial;
}

int run_config_get(const ConfigArgs& args) {
  const auto reply = get(args.common);
  if (!reply) return report(reply.error());
  if (const Status status = check_setting_names(reply->settings, args.names); !status) return report(status);
  for (const std::string& name : args.names) {
    const auto found = std::find_if(reply->settings.begin(), reply->settings.end(),
                                    [&](const rpc::Setting& setting) { return setting.name == name; });
    if (args.explain && !args.common.json()) {
      print_line(fmt::format("{} = {} ({})\n  {}\n  {}, {}; default {}; used by {}", name, effective(*found),
                             source_of(*found), found->meaning, found->type, bounds(*found),
                             found->default_value.empty() ? "as the machine is" : found->default_value,
                             found->used_by));
      for (const std::string& node : found->elsewhere) print_line("  but " + node);
    } else if (args.common.json()) {
      JsonText json;
      add_setting(json, *found);
      print_line(json.str());
    } else {
      print_line(fmt::format("{}  ({})", effective(*found), source_of(*found)));
      for (const std::string& node : found->elsewhere) print_line("  but " + node);
    }
  }
  return kOk;
}

int run_config_set(const ConfigArgs& args) {
  rpc::ChangeConfig request;
  for (const std::string& text : args.names) {
    if (text.find('=') != std::string::npos) {
      request.set.push_back(text);
    } else {
      return report(Status(StatusCode::InvalidArgument, "\"" + text + "\": expected NAME=VALUE"));
    }
  }
  return change(args, std::move(request));
}

int run_config_unset(const ConfigArgs& args) {
  rpc::ChangeConfig request;
  request.unset = args.names;
  return change(args, std::move(request));
}

int run_config_revert(const ConfigArgs& args) {
  rpc::ChangeConfig request;
  request.revert_to = args.version;
  request.revert = args.version == 0;
  return change(args, std::move(request));
}

int run_config_history(const ConfigArgs& args) {
  const auto reply = get(args.common);
  if (!reply) return report(reply.error());
  for (const rpc::ConfigChange& version : reply->versions) {
    if (args.common.json()) {
      JsonText json;
      json.begin_object().key("version").number(version.version).key("unix_us").integer(version.unix_us);
      json.key("who").text(version.who).key("values").begin_array();
      for (const std::string& value : version.values) json.text(value);
      json.end_array().end_object();
      print_line(json.str());
    } else {
      print_line(fmt::format(
          "{:>5}  {}  {}  {}", version.version, time_text(version.unix_us),
          version.values.empty() ? "all at their defaults" : fmt::format("{}", fmt::join(version.values, " ")),
          version.who));
    }
  }
  return kOk;
}

int run_maintenance(const ConfigArgs& args, bool paused) {
  rpc::ChangeConfig request;
  if (paused) {
    request.set = {"maintenance.paused=true"};
  } else {
    request.unset = {"maintenance.paused"};
  }
  return change(args, std::move(request));
}

}  // namespace fjord::cli
