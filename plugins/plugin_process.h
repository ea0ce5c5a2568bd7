#pragma once

#include <functional>
#include <memory>
#include <string>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/plugins/child_process.h"
#include "fjord/plugins/plugin_directory.h"
#include "plugin_protocol.h"

namespace fjord::plugins {

/// A running fjord-plugin-host with one library.
/// Threading: one thread at a time; calls block.
class PluginProcess {
 public:
  /// Errors: IoError if the process cannot be started.
  static Result<std::unique_ptr<PluginProcess>> start(const PluginOptions& options, const std::string& library);

  /// Sends a request, passes the documents that precede the outcome to `on_documents`, and returns the outcome. Errors:
  /// those of the plugin and of ChildProcess.
  Result<HostAnswer> call(const HostRequest& request, Duration timeout, const ChildProcess::IsCancelled& is_cancelled,
                          const std::function<void(HostAnswer)>& on_documents);

 private:
  explicit PluginProcess(std::unique_ptr<ChildProcess> child) : child_(std::move(child)) {}

  std::unique_ptr<ChildProcess> child_;
};

}  // namespace fjord::plugins
