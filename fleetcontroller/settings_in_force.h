#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/rpc/controller_messages.h"
#include "fjord/rpc/operator_messages.h"
#include "live_config.h"

/// Finds the value of a setting that is in force at a process, and checks the rules between settings. A setting outside
/// of the live configuration has the value with which the process started: from its configuration file, or built in.
namespace fjord::fleetcontroller {

inline constexpr std::string_view kFromLive = "live configuration";
inline constexpr std::string_view kFromFile = "configuration file";
inline constexpr std::string_view kFromProgram = "built in";
inline constexpr std::string_view kFromRecord = "record of the cluster";

/// The value of a setting without the live configuration.
struct BaseSetting {
  std::int64_t value = 0;
  std::string_view source = kFromProgram;
  bool yields = false;  ///< The process adapts the value to the other setting of its rule.
  friend bool operator==(const BaseSetting&, const BaseSetting&) = default;
};
using BaseSettings = std::map<std::string, BaseSetting>;

/// Parses PollReply::settings; skips lines that are malformed.
BaseSettings parse_base_settings(const std::vector<std::string>& list);

/// A process that uses settings.
struct SettingUser {
  std::string name;  ///< "storage.1"
  BaseSettings base = {};
  bool has_live = true;  ///< The process has applied the newest live configuration.
  /// "name: why" of each live setting that the process has refused.
  std::vector<std::string> refused = {};
};

/// Sets in_force, source and elsewhere of `said`.
void add_value_in_force(rpc::Setting& said, const SettingDeclaration& setting, const SettingValues& live,
                        const std::vector<SettingUser>& users);

/// Name of the poll interval as a base setting, in milliseconds. It is set in the configuration file only.
inline constexpr const char* kPollInterval = "fleetcontroller.poll_interval_ms";

/// Checks that each rule between two settings holds at every process, whatever the sources of the values. It checks
/// only rules about settings that differ between `before` and `after`, so that a configuration file that breaks a rule
/// does not block other changes. Errors: InvalidArgument with both settings, their values and sources.
Status check_rules(const SettingValues& before, const SettingValues& after, const std::vector<SettingUser>& users);
/// Returns the rules that do not hold at present, one line each. A configuration file may have changed after a live
/// value was accepted.
std::vector<std::string> broken_rules(const SettingValues& live, const std::vector<SettingUser>& users);

}  // namespace fjord::fleetcontroller
