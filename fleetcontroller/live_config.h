#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"

/// The live configuration: settings that change while the cluster runs, for all nodes at once. One table declares them;
/// values are kept and sent as integers in the base unit of their type, which is what tunables take.
namespace fjord::fleetcontroller {

/// Bytes are written "64MiB", durations "1500ms", ratios "0.75", booleans "true"; as integers they are bytes,
/// milliseconds, percent, 0 and 1, and the number of a choice.
enum class SettingType { Integer, Bytes, Duration, Ratio, Boolean, Choice };

struct SettingDeclaration {
  std::string_view name;
  SettingType type = SettingType::Integer;
  /// As people write it: without the live configuration and a key of the configuration file. Empty: it depends on the
  /// machine.
  std::string_view default_text;
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::string_view choices;  ///< "a|b|c", of type Choice.
  std::string_view used_by;
  std::string_view meaning;
};

/// All settings, by name.
std::span<const SettingDeclaration> settings();
/// Null if there is none of that name.
const SettingDeclaration* find_setting(std::string_view name);

/// What a person wrote, as the integer. Errors: InvalidArgument names the setting, the value and what would be right.
Result<std::int64_t> parse_setting(const SettingDeclaration& setting, std::string_view text);
/// The inverse, in the largest unit that says it exactly.
std::string setting_text(const SettingDeclaration& setting, std::int64_t value);

using SettingValues = std::map<std::string, std::string>;  ///< Integers as text, by name.

/// `values` with the changes of `request`, all or none of them. Errors: InvalidArgument. The rules between settings are
/// check_rules() in settings_in_force.h.
Result<SettingValues> change_settings(const SettingValues& values, const rpc::ChangeConfig& request);
/// "name: old -> new", as people write it.
std::vector<std::string> differences(const SettingValues& before, const SettingValues& after);
/// The value of a setting, or `otherwise` if it is at its default.
std::int64_t value_or(const SettingValues& values, std::string_view name, std::int64_t otherwise);
/// The same of a setting that has a default here.
std::int64_t value_or_default(const SettingValues& values, std::string_view name);
/// "name=value" for nodes.
std::vector<std::string> as_list(const SettingValues& values);
/// The reference of all settings as a Markdown page.
std::string settings_page();

}  // namespace fjord::fleetcontroller
