#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/common/setting.h"
#include "fjord/rpc/operator_messages.h"

/// The live configuration: settings that change for all nodes at once while the cluster runs. The table of setting.h
/// declares them. Values are stored and sent as integers in the base unit of their type, as tunables need them.
namespace fjord::fleetcontroller {

/// Returns the setting with that name if `fjord config set` can change it; null otherwise.
const SettingDeclaration* find_live_setting(std::string_view name);

/// Parses a value with its unit into the integer. An operator types bytes as "64MiB", a duration as "1500ms", a ratio
/// as "0.75", a boolean as "true". Errors: InvalidArgument with the setting and valid values.
Result<std::int64_t> parse_setting(const SettingDeclaration& setting, std::string_view text);
/// Returns the integer as text, in the largest unit that is exact.
std::string setting_text(const SettingDeclaration& setting, std::int64_t value);

using SettingValues = std::map<std::string, std::string>;  ///< Integers as text, by name.

/// Returns `values` with all changes of `request`. Does not check rules between settings (check_rules() in
/// settings_in_force.h). Errors: InvalidArgument if one of the changes is invalid.
Result<SettingValues> change_settings(const SettingValues& values, const rpc::ChangeConfig& request);
/// Returns "name: old -> new" of each setting that differs, with units.
std::vector<std::string> differences(const SettingValues& before, const SettingValues& after);
/// Returns the value of a setting, or `otherwise` if it is at its default.
std::int64_t value_or(const SettingValues& values, std::string_view name, std::int64_t otherwise);
/// Returns the value of a setting that has a default, or that default.
std::int64_t value_or_default(const SettingValues& values, std::string_view name);
/// Returns "name=value" of each setting, as sent to nodes.
std::vector<std::string> as_list(const SettingValues& values);
/// Returns the reference of all live settings as a Markdown table.
std::string settings_page();

}  // namespace fjord::fleetcontroller
