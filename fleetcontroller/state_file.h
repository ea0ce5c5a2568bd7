#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/env.h"

namespace fjord::fleetcontroller {

/// What a controller keeps over restarts.
struct PersistedState {
  std::string state;  ///< The last published cluster state string; empty at the very first start.
  std::uint64_t schema_version = 0;
  std::vector<std::string> schemas;
  std::map<std::string, std::uint64_t> incarnations;  ///< By node name, as published.

  friend bool operator==(const PersistedState&, const PersistedState&) = default;
};

/// One file, replaced as a whole: magic, version, checksum, content. Errors of load: Corruption, IoError; a file that
/// is not there is an empty state.
Result<PersistedState> load_state(Env& env, const std::string& directory);
Status save_state(Env& env, const std::string& directory, const PersistedState& state);

}  // namespace fjord::fleetcontroller
