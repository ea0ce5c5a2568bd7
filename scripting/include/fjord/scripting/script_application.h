#pragma once

#include <string>

#include "fjord/mapreduce/application.h"

namespace fjord::scripting {

struct ScriptOptions {
  std::string host;  ///< Path of the program fjord-script-host; empty: next to the running program.
};

/// Adds the application `script`: map, combine and reduce are functions of a Lua program that comes with the job. Each
/// task runs the program in a process of its own, which can only compute and talk to its task. A script that fails,
/// loops or exceeds a limit fails its document or its job with an error that names the cause
/// (docs/operating/scripts.md).
void add_script_application(mapreduce::ApplicationRegistry& registry, const ScriptOptions& options = {});

}  // namespace fjord::scripting
