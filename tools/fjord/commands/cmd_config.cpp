#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "fjord/library/detail/admin_calls.h"
#include "output/json_text.h"
#include "output/time_text.h"

namespace fjord::cli {
namespace {

std::string effective(const SettingInfo& setting) { return setting.value.empty() ? "unknown" : setting.value; }

std::string source_of(const SettingInfo& setting) {
  return setting.source.empty() ? "no node has said" : setting.source;
}

std::string bounds(const SettingInfo& setting) {
  if (setting.type == "bool") return "true or false";
  if (setting.type.find('|') != std::string::npos) return "one of " + setting.type;
  return fmt::format("{} to {}", setting.min, setting.max);
}

void add_setting(JsonText& json, const SettingInfo& setting) {
  json.begin_object().key("name").text(setting.name).key("type").text(setting.type);
  json.key("value").text(setting.live_value).key("default").text(setting.default_value);
  json.key("min").text(setting.min).key("max").text(setting.max);
  json.key("in_force").text(setting.value).key("source").text(setting.source).key("elsewhere").begin_array();
  for (const std::string& node : setting.elsewhere) json.text(node);
  json.end_array().key("used_by").text(setting.used_by).key("meaning").text(setting.meaning).end_object();
}

int show_change(const ConfigArgs& args, const Result<ConfigurationChange>& change) {
  if (!change) return report(change.error());
  if (args.common.json()) {
    JsonText json;
    json.begin_object().key("config_version").number(change->version).key("changes").begin_array();
    for (const std::string& line : change->changes) json.text(line);
    json.end_array().end_object();
    print_line(json.str());
    return kOk;
  }
  for (const std::string& line : change->changes) print_line(line);
  print_line(fmt::format("configuration version {}{}", change->version,
                         change->changes.empty() ? ", nothing changed"
                         : args.dry_run          ? ", not changed"
                                                 : ""));
  return kOk;
}

int set(const ConfigArgs& args, const std::map<std::string, std::string>& values) {
  return with_admin(args.common, [&](Admin admin) {
    return show_change(args, admin.set(values, {.dry_run = args.dry_run, .reason = args.reason}));
  });
}

/// Calls `show(Configuration)` and returns its exit code.
template <typename F>
int with_configuration(const Common& common, F show) {
  return with_admin(common, [&](Admin admin) {
    const auto configuration = admin.configuration();
    return configuration ? show(*configuration) : report(configuration.error());
  });
}

int list(const Configuration& configuration, const Common& common) {
  if (common.json()) {
    JsonText json;
    json.begin_object().key("config_version").number(configuration.version).key("settings").begin_array();
    for (const SettingInfo& setting : configuration.settings) add_setting(json, setting);
    json.end_array().key("waiting").begin_array();
    for (const std::string& node : configuration.waiting) json.text(node);
    json.end_array().key("errors").begin_array();
    for (const std::string& error : configuration.errors) json.text(error);
    json.end_array().end_object();
    print_line(json.str());
    return kOk;
  }
  for (const SettingInfo& setting : configuration.settings) {
    print_line(fmt::format("{:<38} {:<12} {}", setting.name, effective(setting), source_of(setting)));
    for (const std::string& node : setting.elsewhere) print_line("  but " + node);
  }
  print_line(fmt::format("configuration version {}", configuration.version));
  for (const std::string& node : configuration.waiting) print_line("pending: " + node + " does not have it yet");
  for (const std::string& error : configuration.errors) print_line("refused: " + error);
  return configuration.errors.empty() ? kOk : kPartial;
}

void show_setting(const SettingInfo& setting, const ConfigArgs& args) {
  if (args.common.json()) {
    JsonText json;
    add_setting(json, setting);
    return print_line(json.str());
  }
  if (args.explain) {
    print_line(fmt::format("{} = {} ({})\n  {}\n  {}, {}; default {}; used by {}", setting.name, effective(setting),
                           source_of(setting), setting.meaning, setting.type, bounds(setting),
                           setting.default_value.empty() ? "as the machine is" : setting.default_value,
                           setting.used_by));
  } else {
    print_line(fmt::format("{}  ({})", effective(setting), source_of(setting)));
  }
  for (const std::string& node : setting.elsewhere) print_line("  but " + node);
}

}  // namespace

int run_config_list(const ConfigArgs& args) {
  return with_configuration(args.common, [&](const Configuration& all) { return list(all, args.common); });
}

int run_config_get(const ConfigArgs& args) {
  return with_configuration(args.common, [&](const Configuration& all) {
    for (const std::string& name : args.names) {
      if (all.find(name) != nullptr) continue;
      return report(
          {StatusCode::NotFound, fmt::format("there is no setting \"{}\"; `fjord config list` shows all", name)});
    }
    for (const std::string& name : args.names) show_setting(*all.find(name), args);
    return static_cast<int>(kOk);
  });
}

int run_config_set(const ConfigArgs& args) {
  std::map<std::string, std::string> values;
  for (const std::string& text : args.names) {
    const std::size_t equals = text.find('=');
    // `set` without a value would restore the default, for which there is `unset`.
    if (equals == std::string::npos || equals + 1 == text.size()) {
      return report({StatusCode::InvalidArgument, "\"" + text + "\": expected NAME=VALUE"});
    }
    values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return set(args, values);
}

int run_config_unset(const ConfigArgs& args) {
  std::map<std::string, std::string> values;
  for (const std::string& name : args.names) values[name] = "";
  return set(args, values);
}

int run_config_revert(const ConfigArgs& args) {
  return with_admin(args.common, [&](Admin admin) {
    return show_change(args, admin.revert(args.version, {.dry_run = args.dry_run, .reason = args.reason}));
  });
}

int run_config_history(const ConfigArgs& args) {
  return with_configuration(args.common, [&](const Configuration& all) {
    for (const ConfigurationVersion& version : all.history) {
      const Author author = author_of(version.who);
      if (args.common.json()) {
        JsonText json;
        json.begin_object().key("version").number(version.version).key("unix_us").integer(version.unix_us);
        json.key("who").text(author.who).key("why").text(author.why).key("values").begin_array();
        for (const std::string& value : version.values) json.text(value);
        json.end_array().end_object();
        print_line(json.str());
        continue;
      }
      print_line(fmt::format(
          "{:>5}  {}  {}  {}{}", version.version, time_text(version.unix_us),
          version.values.empty() ? "all at their defaults" : fmt::format("{}", fmt::join(version.values, " ")),
          author.who, author.why.empty() ? "" : " -- " + author.why));
    }
    return static_cast<int>(kOk);
  });
}

int run_maintenance(const ConfigArgs& args, bool paused) {
  return set(args, {{"maintenance.paused", paused ? "true" : ""}});
}

}  // namespace fjord::cli
