#include "plugin_process.h"

#include <filesystem>

namespace fjord::plugins {

Result<std::unique_ptr<PluginProcess>> PluginProcess::start(const PluginOptions& options, const std::string& library) {
  ChildProcess::Options child;
  child.name = "plugin " + std::filesystem::path(library).filename().string();
  child.program = options.host.empty() ? ChildProcess::beside_this_program("fjord-plugin-host") : options.host;
  child.arguments = {"--library", library, "--memory-bytes", std::to_string(options.memory_bytes)};
  FJORD_TRY_ASSIGN(auto started, ChildProcess::start(child));
  return std::unique_ptr<PluginProcess>(new PluginProcess(std::move(started)));
}

Result<HostAnswer> PluginProcess::call(const HostRequest& request, Duration timeout,
                                       const ChildProcess::IsCancelled& is_cancelled,
                                       const std::function<void(HostAnswer)>& on_documents) {
  const ChildProcess::Deadline deadline =
      std::chrono::steady_clock::now() + std::chrono::steady_clock::duration(timeout);
  FJORD_TRY(child_->send(ChildProcess::framed(encode(request)), deadline, is_cancelled));
  while (true) {
    FJORD_TRY_ASSIGN(const std::string message, child_->receive(deadline, is_cancelled));
    std::optional<HostAnswer> answer = decode_answer(message);
    if (!answer) return child_->give_up(StatusCode::InvalidArgument, "its process sent nonsense");
    if (answer->docblock) {
      on_documents(std::move(*answer));
    } else if (!answer->status) {
      return answer->status;
    } else {
      return std::move(*answer);
    }
  }
}

}  // namespace fjord::plugins
