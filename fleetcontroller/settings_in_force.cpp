#include "settings_in_force.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace fjord::fleetcontroller {
namespace {

struct Value {
  std::int64_t value = 0;
  std::string_view source;
  bool yields = false;
  bool operator==(const Value&) const = default;
};

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Value> live_value(const SettingValues& live, std::string_view name) {
  const auto found = live.find(std::string(name));
  if (found == live.end()) return std::nullopt;
  const auto value = integer(found->second);
  return value ? std::optional(Value{*value, kFromLive, false}) : std::nullopt;
}

bool refuses(const SettingUser& user, std::string_view name) {
  return std::any_of(user.refused.begin(), user.refused.end(),
                     [&](const std::string& error) { return error.starts_with(std::string(name) + ":"); });
}

/// Returns the value in force at the process. Empty: the process does not use the setting or has not reported it.
std::optional<Value> value_at(const SettingUser& user, const SettingValues& live, std::string_view name) {
  const auto base = user.base.find(std::string(name));
  if (base == user.base.end()) return std::nullopt;
  const auto set = live_value(live, name);
  if (set && user.has_live && !refuses(user, name)) return set;
  return Value{base->second.value, base->second.source, base->second.yields};
}

std::string text_of(std::string_view name, std::int64_t value) {
  if (const SettingDeclaration* setting = find_setting(name)) return setting_text(*setting, value);
  return fmt::format("{}", value);
}

/// Returns how the process breaks the rule. Empty: the rule holds, or the process does not have both settings.
std::string broken_at(const SettingRule& rule, const SettingValues& live, const SettingUser& user) {
  // A value that is about to be stored will be in force at every process that knows the setting.
  SettingUser all = user;
  all.has_live = true;
  all.refused.clear();
  const auto lower = value_at(all, live, rule.lower);
  const auto upper = value_at(all, live, rule.upper);
  if (!lower || !upper || lower->yields) return {};
  if (rule.is_strict ? lower->value < upper->value : lower->value <= upper->value) return {};
  return fmt::format("{} ({}, {}) has to be {} {} ({}, {}), or {}", rule.lower, text_of(rule.lower, lower->value),
                     lower->source, rule.is_strict ? "less than" : "at most", rule.upper,
                     text_of(rule.upper, upper->value), upper->source, rule.why);
}

bool differs(const SettingValues& before, const SettingValues& after, std::string_view name) {
  const auto old = before.find(std::string(name));
  const auto now = after.find(std::string(name));
  if (old == before.end() || now == after.end()) return (old == before.end()) != (now == after.end());
  return old->second != now->second;
}

/// Returns a process with the defaults of the table, for use while no process has reported its settings.
SettingUser declared_defaults() {
  SettingUser user{.name = "the defaults"};
  for (const SettingDeclaration& setting : settings()) {
    if (!setting.has_default()) continue;
    user.base[std::string(setting.name)] = {setting.default_value, kFromProgram, setting.name == "controller.lease"};
  }
  return user;
}

}  // namespace

BaseSettings parse_base_settings(const std::vector<std::string>& list) {
  BaseSettings base;
  for (const std::string& line : list) {
    const std::size_t value_at = line.find('=');
    if (value_at == std::string::npos) continue;
    const std::size_t source_at = std::min(line.find('=', value_at + 1), line.size());
    const auto value = integer(std::string_view(line).substr(value_at + 1, source_at - value_at - 1));
    if (!value) continue;
    const bool from_file = source_at < line.size() && line.substr(source_at + 1) == "file";
    base[line.substr(0, value_at)] = {*value, from_file ? kFromFile : kFromProgram};
  }
  return base;
}

void add_value_in_force(rpc::Setting& said, const SettingDeclaration& setting, const SettingValues& live,
                        const std::vector<SettingUser>& users) {
  const std::string name(setting.name);
  struct Group {
    Value value;
    std::vector<std::string> nodes;
  };
  std::vector<Group> groups;
  for (const SettingUser& user : users) {
    const auto value = value_at(user, live, name);
    if (!value) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.value == *value; });
    if (same == groups.end()) {
      groups.push_back({*value, {user.name}});
    } else {
      same->nodes.push_back(user.name);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.nodes.size() > b.nodes.size(); });
  if (groups.empty()) {
    const auto set = live_value(live, name);
    if (!set && !setting.has_default()) return;
    said.in_force = setting_text(setting, set ? set->value : setting.default_value);
    said.source = set ? kFromLive : kFromProgram;
    return;
  }
  said.in_force = setting_text(setting, groups.front().value.value);
  said.source = groups.front().value.source;
  for (std::size_t i = 1; i < groups.size(); ++i) {
    for (const std::string& node : groups[i].nodes) {
      said.elsewhere.push_back(
          fmt::format("{}: {} ({})", node, setting_text(setting, groups[i].value.value), groups[i].value.source));
    }
  }
}

Status check_rules(const SettingValues& before, const SettingValues& after, const std::vector<SettingUser>& users) {
  const SettingUser defaults = declared_defaults();
  for (const SettingRule& rule : setting_rules()) {
    if (!differs(before, after, rule.lower) && !differs(before, after, rule.upper)) continue;
    bool is_known = false;
    for (const SettingUser& user : users) {
      is_known = is_known || user.base.contains(std::string(rule.upper));
      const std::string broken = broken_at(rule, after, user);
      if (!broken.empty()) {
        return {StatusCode::InvalidArgument,
                fmt::format("{}: {}", user.name, broken),
                {.node = user.name, .limit = std::string(rule.upper), .setting = std::string(rule.lower)}};
      }
    }
    // The processes of a cluster do not report a setting that only the configuration file sets.
    if (is_known || find_live_setting(rule.upper) == nullptr) continue;
    const std::string broken = broken_at(rule, after, defaults);
    if (!broken.empty()) {
      return {
          StatusCode::InvalidArgument, broken, {.limit = std::string(rule.upper), .setting = std::string(rule.lower)}};
    }
  }
  return Status::ok();
}

std::vector<std::string> broken_rules(const SettingValues& live, const std::vector<SettingUser>& users) {
  std::vector<std::string> lines;
  for (const SettingUser& user : users) {
    for (const SettingRule& rule : setting_rules()) {
      const std::string broken = broken_at(rule, live, user);
      if (!broken.empty()) lines.push_back(user.name + ": " + broken);
    }
  }
  return lines;
}

}  // namespace fjord::fleetcontroller
