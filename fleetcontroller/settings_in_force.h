#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/rpc/messages.h"
#include "live_config.h"

/// Finds the value of a setting that is in force at a process, and checks the rules between settings. A setting that
/// the live configuration does not name has the value that the process began with: from its configuration file, or
/// built in.
namespace fjord::fleetcontroller {

inline constexpr std::string_view kFromLive = "live configuration";
inline constexpr std::string_view kFromFile = "configuration file";
inline constexpr std::string_view kFromProgram = "built in";
inline constexpr std::string_view kFromRecord = "record of the cluster";

/// The value of a setting without the live configuration.
struct BaseSetting {
  std::int64_t value = 0;
  std::string_view source = kFromProgram;
  bool yields = false;  ///< It follows the other setting of its rules by itself.
  friend bool operator==(const BaseSetting&, const BaseSetting&) = default;
};
using BaseSettings = std::map<std::string, BaseSetting>;

/// Reads PollReply::settings; leaves out what does not parse.
BaseSettings parse_base_settings(const std::vector<std::string>& list);

/// A process that uses settings.
struct SettingUser {
  std::string name;  ///< "storage.1"
  BaseSettings base = {};
  bool has_live = true;  ///< It has taken the newest live configuration.
  /// "name: why": settings of the live configuration that it refused.
  std::vector<std::string> refused = {};
};

/// Sets in_force, source and elsewhere of `said`.
void add_value_in_force(rpc::Setting& said, const SettingDeclaration& setting, const SettingValues& live,
                        const std::vector<SettingUser>& users);

/// The interval at which a fleet controller polls, as a base setting in milliseconds; only the file has it.
inline constexpr const char* kPollInterval = "fleetcontroller.poll_interval_ms";

/// OK if each rule between two settings holds at every process, wherever the values come from. Only rules about a
/// setting that `after` changes are looked at, so that a file that breaks one does not forbid all other changes.
/// Errors: InvalidArgument with both settings, their values and where these come from.
Status check_rules(const SettingValues& before, const SettingValues& after, const std::vector<SettingUser>& users);
/// The rules that do not hold now, one line each: a file may have changed since a live value was accepted.
std::vector<std::string> broken_rules(const SettingValues& live, const std::vector<SettingUser>& users);

}  // namespace fjord::fleetcontroller
