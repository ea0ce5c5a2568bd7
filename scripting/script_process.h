#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/child_process.h"
#include "fjord/common/result.h"
#include "script_protocol.h"

namespace fjord::scripting {

struct ScriptLimits {
  std::int64_t memory_mb = 0;
  std::int64_t call_ms = 0;
  std::int64_t cpu_seconds = 0;  ///< Of all processes of the task together.
};

/// The program of one task, in a fjord-script-host. A process that is lost, whatever the reason, can be followed by
/// another one, as nothing but the call that it was lost in depends on it.
///
/// Threading: one thread at a time; calls block.
class ScriptProcess {
 public:
  /// `host`: the program fjord-script-host.
  ScriptProcess(std::string host, ScriptLimits limits, std::string script)
      : host_(std::move(host)), limits_(limits), script_(std::move(script)) {}

  /// So that there is a process with the program in it. Errors: IoError; InvalidArgument for what is wrong with the
  /// program, and if the CPU time of the task is used up.
  Status start();
  /// The answer behind its first byte. There is a process. Errors: what the script says; those of ChildProcess, after
  /// which there is none.
  Result<std::string> call(Call call, std::string_view arguments, const ChildProcess::IsCancelled& is_cancelled);
  /// Ends a process that answers what no host does.
  Status nonsense();

  bool is_there() const { return child_ != nullptr; }
  bool has_combine() const { return has_combine_; }
  bool needs_body() const { return needs_body_; }

 private:
  std::string host_;
  ScriptLimits limits_;
  std::string script_;
  std::unique_ptr<ChildProcess> child_;
  std::chrono::steady_clock::duration spent_{};  ///< In calls: no less than their CPU time.
  bool has_combine_ = false;
  bool needs_body_ = true;
};

}  // namespace fjord::scripting
