#include "live_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>

#include "fjord/common/byte_units.h"

namespace fjord::fleetcontroller {
namespace {

using enum SettingType;

struct UnitName {
  std::string_view name;
  std::int64_t factor;
};
constexpr std::array<UnitName, 4> kTimeUnits = {{{"h", 3'600'000}, {"min", 60'000}, {"s", 1000}, {"ms", 1}}};

Result<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return Status(StatusCode::InvalidArgument, "");
  return value;
}

/// Parses a number with a unit of time, such as "1500ms"; only 0 may have none.
Result<std::int64_t> duration(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  std::string_view unit = text.substr(digits);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  FJORD_TRY_ASSIGN(const std::int64_t number, integer(text.substr(0, digits)));
  if (unit.empty() && number == 0) return std::int64_t{0};
  for (const UnitName& known : kTimeUnits) {
    if (unit != known.name) continue;
    if (number > std::int64_t{1} << 62 || number > (std::int64_t{1} << 62) / known.factor) break;
    return number * known.factor;
  }
  return Status(StatusCode::InvalidArgument, "");
}

std::string duration_text(std::int64_t value) {
  for (const UnitName& unit : kTimeUnits) {
    if (value % unit.factor == 0 && (value != 0 || unit.factor == 1)) {
      return fmt::format("{}{}", value / unit.factor, unit.name);
    }
  }
  return std::to_string(value);
}

Result<std::int64_t> ratio(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const double percent = std::round(value * 100);
  const bool fits = error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= 1;
  if (!fits || std::abs(percent - value * 100) > 1e-9) return Status(StatusCode::InvalidArgument, "");
  return static_cast<std::int64_t>(percent);
}

/// The name of a choice; empty if there is none with this index.
std::string_view choice_name(std::string_view choices, std::int64_t index) {
  for (; index > 0 && !choices.empty(); --index) {
    const std::size_t at = choices.find('|');
    choices = at == std::string_view::npos ? std::string_view() : choices.substr(at + 1);
  }
  return choices.substr(0, choices.find('|'));
}

Result<std::int64_t> parse_value(const SettingDeclaration& setting, std::string_view text) {
  switch (setting.type) {
    case Integer:
      return integer(text);
    case Bytes:
      return parse_bytes(text);
    case Time:
      return duration(text);
    case Ratio:
      return ratio(text);
    case Boolean:
      if (text == "true") return std::int64_t{1};
      if (text == "false") return std::int64_t{0};
      break;
    case Choice:
      for (std::int64_t index = 0; !text.empty() && index <= setting.max; ++index) {
        if (text == choice_name(setting.choices, index)) return index;
      }
      break;
  }
  return Status(StatusCode::InvalidArgument, "");
}

std::string expected(const SettingDeclaration& setting) {
  if (setting.type == Boolean) return "true or false";
  if (setting.type == Choice) return fmt::format("one of {}", setting.choices);
  static constexpr std::string_view kNames[] = {"an integer", "bytes such as 64MiB", "a duration such as 1500ms",
                                                "a ratio with two digits at most"};
  return fmt::format("{} from {} to {}", kNames[static_cast<std::size_t>(setting.type)],
                     setting_text(setting, setting.min), setting_text(setting, setting.max));
}

std::string choices_text(const SettingDeclaration& setting) {
  std::string text;
  for (std::int64_t index = 0; index <= setting.max; ++index) {
    text += (text.empty() ? "" : ", ") + std::string(choice_name(setting.choices, index));
  }
  return text;
}

Result<const SettingDeclaration*> known(std::string_view name) {
  if (const SettingDeclaration* setting = find_live_setting(name)) return setting;
  if (find_setting(name) != nullptr) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("{} is set in the configuration file and takes effect at the start of a process", name),
                  {.setting = std::string(name)});
  }
  return Status(StatusCode::InvalidArgument,
                fmt::format("there is no setting \"{}\"; `fjord config list` shows all", name),
                {.setting = std::string(name)});
}

}  // namespace

const SettingDeclaration* find_live_setting(std::string_view name) {
  const SettingDeclaration* setting = find_setting(name);
  return setting != nullptr && setting->is_live ? setting : nullptr;
}

Result<std::int64_t> parse_setting(const SettingDeclaration& setting, std::string_view text) {
  const Result<std::int64_t> value = parse_value(setting, text);
  if (value && *value >= setting.min && *value <= setting.max) return value;
  return Status(StatusCode::InvalidArgument, fmt::format("{}: \"{}\" is not {}", setting.name, text, expected(setting)),
                {.limit = expected(setting), .setting = std::string(setting.name)});
}

std::string setting_text(const SettingDeclaration& setting, std::int64_t value) {
  switch (setting.type) {
    case Bytes:
      return exact_bytes_text(value);
    case Time:
      return duration_text(value);
    case Ratio:
      return fmt::format("{:g}", static_cast<double>(value) / 100);
    case Boolean:
      return value == 0 ? "false" : "true";
    case Choice:
      return std::string(choice_name(setting.choices, value));
    case Integer:
      break;
  }
  return std::to_string(value);
}

Result<SettingValues> change_settings(const SettingValues& values, const rpc::ChangeConfig& request) {
  SettingValues changed = values;
  for (const std::string& name : request.unset) {
    FJORD_TRY(known(name).status());
    changed.erase(name);
  }
  for (const std::string& assignment : request.set) {
    const std::size_t at = assignment.find('=');
    if (at == std::string::npos) {
      return Status(StatusCode::InvalidArgument, fmt::format("\"{}\": expected NAME=VALUE", assignment));
    }
    FJORD_TRY_ASSIGN(const SettingDeclaration* setting, known(std::string_view(assignment).substr(0, at)));
    FJORD_TRY_ASSIGN(const std::int64_t value, parse_setting(*setting, std::string_view(assignment).substr(at + 1)));
    changed[std::string(setting->name)] = std::to_string(value);
  }
  return changed;
}

std::vector<std::string> differences(const SettingValues& before, const SettingValues& after) {
  std::vector<std::string> lines;
  for (const SettingDeclaration& setting : settings()) {
    const auto text = [&](const SettingValues& values) -> std::string {
      const auto found = values.find(std::string(setting.name));
      if (found == values.end()) return "default";
      const Result<std::int64_t> value = integer(found->second);
      return value ? setting_text(setting, *value) : found->second;
    };
    if (text(before) != text(after))
      lines.push_back(fmt::format("{}: {} -> {}", setting.name, text(before), text(after)));
  }
  return lines;
}

std::int64_t value_or(const SettingValues& values, std::string_view name, std::int64_t otherwise) {
  const auto found = values.find(std::string(name));
  if (found == values.end()) return otherwise;
  const Result<std::int64_t> value = integer(found->second);
  return value ? *value : otherwise;
}

std::int64_t value_or_default(const SettingValues& values, std::string_view name) {
  return value_or(values, name, find_setting(name)->default_value);
}

std::vector<std::string> as_list(const SettingValues& values) {
  std::vector<std::string> list;
  for (const auto& [name, value] : values) list.push_back(fmt::format("{}={}", name, value));
  return list;
}

std::string settings_page() {
  std::string page = "| setting | default | bounds | used by | meaning |\n|---|---|---|---|---|\n";
  for (const SettingDeclaration& setting : settings()) {
    if (!setting.is_live) continue;
    const std::string otherwise =
        setting.has_default() ? setting_text(setting, setting.default_value) : "of the machine";
    const std::string bounds = setting.type == Boolean  ? "true, false"
                               : setting.type == Choice ? choices_text(setting)
                                                        : fmt::format("{} to {}", setting_text(setting, setting.min),
                                                                      setting_text(setting, setting.max));
    page += fmt::format("| `{}` | {} | {} | {} | {} |\n", setting.name, otherwise, bounds, setting.used_by,
                        setting.meaning);
  }
  return page;
}

}  // namespace fjord::fleetcontroller
