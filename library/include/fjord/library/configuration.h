#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What Admin says about the live configuration.
namespace fjord {

struct SettingInfo {
  std::string name;
  std::string type;           ///< "integer", "bytes", "duration", "ratio", "bool" or the choices, "a|b".
  std::string default_value;  ///< Empty: it comes from the configuration file or depends on the machine.
  std::string min;
  std::string max;
  std::string value;                   ///< The value in force on most nodes.
  std::string source;                  ///< "live configuration", "configuration file" or "built in".
  std::string live_value;              ///< Value in the live configuration; empty: it is not in it.
  std::vector<std::string> elsewhere;  ///< Nodes with other values: "storage.1: 32MiB (configuration file)".
  std::string used_by;
  std::string meaning;
};

/// One version of the live configuration.
struct ConfigurationVersion {
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::vector<std::string> values;  ///< "name=value" of each setting that was not at its default.
};

struct Configuration {
  std::uint64_t version = 0;
  std::vector<SettingInfo> settings;
  std::vector<ConfigurationVersion> history;  ///< Oldest first; the last one is in force.
  std::vector<std::string> waiting;           ///< Nodes that have not applied the version yet.
  std::vector<std::string> errors;            ///< "storage.1: name: why" of each value that a node has refused.

  /// Null if there is no such setting.
  const SettingInfo* find(std::string_view name) const;
};

struct SetOptions {
  bool dry_run = false;
  /// The change fails with TestAndSetFailed unless the live configuration has this version. Absent: the change applies
  /// to whatever version there is.
  std::optional<std::uint64_t> if_version = {};
  std::string reason = {};  ///< Written into the history behind the user's name.
  /// Written into the history before the user's name. With a tag of its own a change is found again if its answer was
  /// lost, so that it does not end as Timeout.
  std::string tag = {};
};

struct ConfigurationChange {
  std::uint64_t version = 0;         ///< Version that is in force now.
  std::vector<std::string> changes;  ///< A line for each changed setting: "storage.visitors_max: default -> 64".
};

}  // namespace fjord
