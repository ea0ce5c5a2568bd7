#pragma once

#include <string>

#include "fjord/mapreduce/application.h"

namespace fjord::scripting {

struct ScriptOptions {
  std::string host;  ///< The program fjord-script-host; empty: beside the running program.
};

/// Adds the application `script`: map, combine and reduce are functions of a Lua program that comes with the job. Each
/// task runs it in a process of its own, which may compute and talk to its task and nothing else; a script that fails,
/// loops, or takes too much fails its document or its job with an error that says so (docs/operating/scripts.md).
void add_script_application(mapreduce::ApplicationRegistry& registry, const ScriptOptions& options = {});

}  // namespace fjord::scripting
