#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/plugins/child_process.h"
#include "script_memory.h"
#include "script_protocol.h"

namespace fjord::scripting {

struct ScriptLimits {
  std::int64_t memory_mb = 0;
  std::int64_t call_ms = 0;
  std::int64_t cpu_seconds = 0;  ///< CPU time of all processes of the task together.
};

/// The program of one task, in a fjord-script-host. A lost process can be replaced by a new one, because only the
/// interrupted call depends on the old one.
///
/// Threading: one thread at a time; calls block.
class ScriptProcess {
 public:
  /// `host`: path of the program fjord-script-host; empty: next to the running program.
  ScriptProcess(std::string host, std::shared_ptr<ScriptMemory> memory, ScriptLimits limits, std::string script)
      : host_(std::move(host)), memory_(std::move(memory)), limits_(limits), script_(std::move(script)) {}

  /// Starts a process with the program if there is none. The program has kLoadTime to define its functions. Errors:
  /// IoError; Busy if there is no memory for it; InvalidArgument if the program is wrong or the CPU time of the task is
  /// used up.
  Status start();
  /// Sends a call and returns the answer without its first byte. Requires a process. Errors: those of the script; those
  /// of ChildProcess, which end the process.
  Result<std::string> call(Call call, std::string_view arguments, const ChildProcess::IsCancelled& is_cancelled);
  /// Ends a process that sent a malformed answer and returns the error.
  Status nonsense();

  bool is_there() const { return child_ != nullptr; }
  bool has_combine() const { return has_combine_; }
  bool needs_body() const { return needs_body_; }

 private:
  /// Sends a call. `call_ms`: what a function of the script may take.
  Result<std::string> call(Call call, std::string_view arguments, std::int64_t call_ms,
                           const ChildProcess::IsCancelled& is_cancelled);

  std::string host_;
  std::shared_ptr<ScriptMemory> memory_;
  std::unique_ptr<ScriptMemory::Share> share_;  ///< Kept over processes that follow one another.
  ScriptLimits limits_;
  std::string script_;
  std::unique_ptr<ChildProcess> child_;
  std::chrono::steady_clock::duration spent_{};  ///< Wall time of starts and calls: an upper bound of their CPU time.
  bool has_combine_ = false;
  bool needs_body_ = true;
};

}  // namespace fjord::scripting
