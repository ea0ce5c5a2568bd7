// The plugins that the nodes use.

#include <fmt/format.h>
#include <map>
#include <tuple>
#include <utility>

#include "fjord/library/admin.h"
#include "fjord/library/detail/client_core.h"

namespace fjord {

namespace {

/// Returns the names and addresses of the nodes that serve.
std::vector<std::pair<std::string, rpc::Address>> nodes_of(const rpc::ClusterSnapshot& snapshot) {
  std::vector<std::pair<std::string, rpc::Address>> nodes;
  const rpc::ClusterInfo& info = snapshot.info();
  for (std::size_t i = 0; i < info.storage_addresses.size(); ++i) {
    if (snapshot.storage_serves(static_cast<std::uint16_t>(i)))
      nodes.emplace_back(fmt::format("storage.{}", i), info.storage_addresses[i]);
  }
  for (std::size_t i = 0; i < info.distributor_addresses.size(); ++i) {
    nodes.emplace_back(fmt::format("distributor.{}", i), info.distributor_addresses[i]);
  }
  return nodes;
}

}  // namespace

Result<Plugins> Admin::plugins() {
  FJORD_TRY(core_->wait_ready());
  Plugins plugins;
  // The functions that nodes report, by name, kind (applications first) and version: several nodes report the same one.
  std::map<std::tuple<std::string, bool, std::string>, PluginFunction> functions;
  for (const auto& [node, address] : nodes_of(*core_->client().snapshot())) {
    const bool is_storage = node.starts_with("storage");
    const auto reply = ask_node(core_->connection(), address, rpc::ListPlugins{}, core_->timeout({}));
    if (!reply) {
      plugins.problems.push_back({node, "", reply.error().to_string()});
      continue;
    }
    ++(is_storage ? plugins.storage_nodes : plugins.distributors);
    for (const rpc::PluginLibrary& library : reply->libraries) {
      if (!library.problem.empty()) plugins.problems.push_back({node, library.file, library.problem});
      for (const rpc::PluginFunction& function : library.functions) {
        if (!is_storage && !function.is_application) continue;
        PluginFunction& known = functions[{function.name, !function.is_application, function.version}];
        known.help = function.help;
        known.nodes.push_back(node);
      }
    }
  }
  for (auto& [what, function] : functions) {
    bool is_visitor = false;
    std::tie(function.name, is_visitor, function.version) = what;
    function.is_application = !is_visitor;
    plugins.functions.push_back(std::move(function));
  }
  return plugins;
}

}  // namespace fjord
