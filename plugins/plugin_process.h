#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/plugins/plugin_directory.h"
#include "plugin_protocol.h"

namespace fjord::plugins {

/// A running fjord-plugin-host with one library. Ends with this object, at the latest.
/// Threading: one thread at a time; calls block.
class PluginProcess {
 public:
  /// Errors: IoError if it cannot be started.
  static Result<std::unique_ptr<PluginProcess>> start(const PluginOptions& options, const std::string& library);
  ~PluginProcess();
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  /// Asks, hands on the documents that come before the outcome, and returns that. `is_cancelled` is asked ten times a
  /// second. Errors: what the plugin said; InvalidArgument, which says how, when the process ended, took longer than
  /// `timeout` or said nonsense; Cancelled. After one of those three it is gone, and every later call says the same.
  Result<HostAnswer> call(const HostRequest& request, Duration timeout, const std::function<bool()>& is_cancelled,
                          const std::function<void(HostAnswer)>& on_documents);

 private:
  PluginProcess(std::string library, pid_t pid, int socket)
      : library_(std::move(library)), pid_(pid), socket_(socket) {}

  using Deadline = std::chrono::steady_clock::time_point;
  Status wait_for(short events, Deadline deadline, const std::function<bool()>& is_cancelled);
  Status send(std::string_view frame, Deadline deadline, const std::function<bool()>& is_cancelled);
  Status receive(char* to, std::size_t bytes, Deadline deadline, const std::function<bool()>& is_cancelled);
  Result<std::string> receive_message(Deadline deadline, const std::function<bool()>& is_cancelled);
  Status gone(StatusCode code, const std::string& why);
  std::string how_it_ended();
  void end();

  std::string library_;
  pid_t pid_;  ///< -1: reaped.
  int socket_;
  Status gone_;
};

}  // namespace fjord::plugins
