#pragma once

#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/tunable.h"
#include "fjord/mapreduce/application.h"

namespace fjord::scripting {

struct ScriptOptions {
  std::string host = {};  ///< Path of the program fjord-script-host; empty: next to the running program.
  /// The setting mapreduce.script_memory_bytes, which bounds the scripts that run in this process together. Null: there
  /// is no bound. Lifetime: it outlives the registry.
  const Tunable* memory_bytes = nullptr;
  /// False: configure() starts no process. For a process where it is called on a thread that serves others.
  bool starts_at_once = true;
  /// Maximum of the parameter timeout_ms in this process; a greater value counts as it.
  Duration call_max = seconds(3600);
};

/// Adds the application `script`: map, combine and reduce are functions of a Lua program that comes with the job. Each
/// task runs the program in a process of its own, which can only compute and talk to its task. A script that fails,
/// loops or exceeds a limit fails its document or its job with an error that names the cause
/// (docs/operating/scripts.md).
void add_script_application(mapreduce::ApplicationRegistry& registry, const ScriptOptions& options = {});

}  // namespace fjord::scripting
