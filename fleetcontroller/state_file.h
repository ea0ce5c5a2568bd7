#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/env.h"

namespace fjord::fleetcontroller {

/// The content of the state file of earlier versions, which a controller kept over restarts.
struct PersistedState {
  std::string state;  ///< Text of the last published cluster state; empty before the first one.
  std::uint64_t schema_version = 0;
  std::vector<std::string> schemas;
  std::map<std::string, std::uint64_t> incarnations;  ///< Published incarnations by node name.

  friend bool operator==(const PersistedState&, const PersistedState&) = default;
};

/// Reads the state file: magic, version, checksum, content. Returns an empty state if there is no file. Errors:
/// Corruption if the file is malformed; IoError.
Result<PersistedState> load_state(Env& env, const std::string& directory);
/// Replaces the state file as a whole. Errors: IoError.
Status save_state(Env& env, const std::string& directory, const PersistedState& state);

}  // namespace fjord::fleetcontroller
