#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

/// Nodes and their addresses.
using Nodes = std::vector<std::pair<std::string, rpc::Address>>;

/// One function and the nodes that offer it. Only storage nodes count for a visitor.
struct Offered {
  std::string help;
  std::vector<std::string> nodes;
};
struct Plugins {
  std::map<std::tuple<std::string, std::string, std::string>, Offered> functions;  ///< By name, kind and version.
  std::vector<std::tuple<std::string, std::string, std::string>> problems;         ///< Node, library, reason.
  std::size_t storage_nodes = 0;
  std::size_t distributors = 0;
};

Nodes nodes_of(const rpc::ClusterSnapshot& snapshot) {
  Nodes nodes;
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

Plugins ask_all(Connection& connection, const Nodes& nodes, Duration timeout) {
  Plugins plugins;
  for (const auto& [node, address] : nodes) {
    const bool is_storage = node.starts_with("storage");
    const auto reply = ask_node(connection, address, rpc::ListPlugins{}, timeout);
    if (!reply) {
      plugins.problems.emplace_back(node, "", reply.error().to_string());
      continue;
    }
    ++(is_storage ? plugins.storage_nodes : plugins.distributors);
    for (const rpc::PluginLibrary& library : reply->libraries) {
      if (!library.problem.empty()) plugins.problems.emplace_back(node, library.file, library.problem);
      for (const rpc::PluginFunction& function : library.functions) {
        if (!is_storage && !function.is_application) continue;
        const char* kind = function.is_application ? "application" : "visitor";
        Offered& offered = plugins.functions[{function.name, kind, function.version}];
        offered.help = function.help;
        offered.nodes.push_back(node);
      }
    }
  }
  return plugins;
}

std::string as_json(const Plugins& plugins) {
  std::string text;
  for (const auto& [what, offered] : plugins.functions) {
    const auto& [name, kind, version] = what;
    JsonText json;
    json.begin_object().key("name").text(name).key("kind").text(kind).key("version").text(version);
    json.key("help").text(offered.help).key("nodes").begin_array();
    for (const std::string& node : offered.nodes) json.text(node);
    text += json.end_array().end_object().str() + "\n";
  }
  for (const auto& [node, library, problem] : plugins.problems) {
    JsonText json;
    json.begin_object().key("node").text(node).key("library").text(library).key("problem").text(problem);
    text += json.end_object().str() + "\n";
  }
  return text;
}

std::string as_text(const Plugins& plugins) {
  std::string text = fmt::format("{:<20} {:<12} {:<10} {:<10} {:<13} {}\n", "NAME", "KIND", "VERSION", "STORAGE",
                                 "DISTRIBUTORS", "WHAT");
  for (const auto& [what, offered] : plugins.functions) {
    const auto& [name, kind, version] = what;
    const auto storage = std::count_if(offered.nodes.begin(), offered.nodes.end(),
                                       [](const std::string& node) { return node.starts_with("storage"); });
    const bool is_application = kind == "application";
    text += fmt::format(
        "{:<20} {:<12} {:<10} {:<10} {:<13} {}\n", name, kind, version.empty() ? "-" : version,
        fmt::format("{} of {}", storage, plugins.storage_nodes),
        is_application
            ? fmt::format("{} of {}", offered.nodes.size() - static_cast<std::size_t>(storage), plugins.distributors)
            : "-",
        offered.help);
  }
  for (const auto& [node, library, problem] : plugins.problems) {
    text += library.empty() ? fmt::format("{} does not answer: {}\n", node, problem)
                            : fmt::format("{} does not use {}: {}\n", node, library, problem);
  }
  return text;
}

}  // namespace

int run_plugin_list(const Common& common) {
  auto connection = connect_to(common);
  if (!connection) return report(connection.error());
  const auto snapshot = (*connection)->client().snapshot();
  if (snapshot == nullptr) return report(Status(StatusCode::NotReady, "no cluster state yet"));
  const Plugins plugins = ask_all(**connection, nodes_of(*snapshot), common.timeout());
  print(common.json() ? as_json(plugins) : as_text(plugins));
  return kOk;
}

}  // namespace fjord::cli
