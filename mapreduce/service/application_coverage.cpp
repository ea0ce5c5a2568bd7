#include "application_coverage.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace fjord::mapreduce {
namespace {

constexpr Duration kAnswerTimeout = seconds(3);

/// The answers received so far.
struct Coverage {
  std::string name;
  std::string version;
  std::size_t waiting = 0;
  std::map<std::uint16_t, std::string> problems;  ///< Problem per storage node.
  UniqueFunction<void(Status)> done;

  void finish() {
    std::string text;
    for (const auto& [node, problem] : problems)
      text += (text.empty() ? "" : "; ") + ("storage." + std::to_string(node)) + " " + problem;
    done(text.empty() ? Status::ok()
                      : Status(StatusCode::InvalidArgument, "the application " + name + ", version " + version +
                                                                ", is not on all storage nodes: " + text));
  }
};

/// Returns why the node with this answer cannot run tasks of the job; empty if it can.
std::string problem_of(const rpc::ListPluginsReply& reply, const Coverage& wanted) {
  std::string refused;
  for (const rpc::PluginLibrary& library : reply.libraries) {
    if (!library.problem.empty()) refused += (refused.empty() ? " (" : ", ") + library.file + " " + library.problem;
    for (const rpc::PluginFunction& function : library.functions) {
      if (!library.problem.empty() || !function.is_application || function.name != wanted.name) continue;
      return function.version == wanted.version ? "" : "has version " + function.version;
    }
  }
  return "does not have it" + refused + (refused.empty() ? "" : ")");
}

}  // namespace

void ask_for_application(rpc::Transport& transport, const rpc::ClusterSnapshot& snapshot, Executor& executor,
                         const ApplicationInfo& application, UniqueFunction<void(Status)> done) {
  auto coverage = std::make_shared<Coverage>();
  coverage->name = application.name;
  coverage->version = application.version;
  coverage->done = std::move(done);
  const std::vector<rpc::Address>& addresses = snapshot.info().storage_addresses;
  std::vector<std::uint16_t> nodes;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (snapshot.storage_serves(static_cast<std::uint16_t>(i))) nodes.push_back(static_cast<std::uint16_t>(i));
  }
  if (nodes.empty()) return executor.post([coverage] { coverage->finish(); });
  coverage->waiting = nodes.size();
  for (const std::uint16_t node : nodes) {
    rpc::call(transport, addresses[node], rpc::ListPlugins{}, kAnswerTimeout, executor,
              [coverage, node](const Result<rpc::ListPluginsReply>& reply) {
                std::string problem;
                const Status status = reply ? reply->status : reply.error();
                if (status) {
                  problem = problem_of(*reply, *coverage);
                } else if (status.code() == StatusCode::NotImplemented) {
                  problem = "is of a Fjord that has no applications of plugins";
                }
                if (!problem.empty()) coverage->problems[node] = std::move(problem);
                if (--coverage->waiting == 0) coverage->finish();
              });
  }
}

}  // namespace fjord::mapreduce
