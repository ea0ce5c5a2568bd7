#include <algorithm>
#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

const char* kind_of(const PluginFunction& function) { return function.is_application ? "application" : "visitor"; }

std::string as_json(const Plugins& plugins) {
  std::string text;
  for (const PluginFunction& function : plugins.functions) {
    JsonText json;
    json.begin_object().key("name").text(function.name).key("kind").text(kind_of(function));
    json.key("version").text(function.version).key("help").text(function.help).key("nodes").begin_array();
    for (const std::string& node : function.nodes) json.text(node);
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
  for (const PluginFunction& function : plugins.functions) {
    const auto storage = std::count_if(function.nodes.begin(), function.nodes.end(),
                                       [](const std::string& node) { return node.starts_with("storage"); });
    const std::size_t others = function.nodes.size() - static_cast<std::size_t>(storage);
    text += fmt::format(
        "{:<20} {:<12} {:<10} {:<10} {:<13} {}\n", function.name, kind_of(function),
        function.version.empty() ? "-" : function.version, fmt::format("{} of {}", storage, plugins.storage_nodes),
        function.is_application ? fmt::format("{} of {}", others, plugins.distributors) : "-", function.help);
  }
  for (const auto& [node, library, problem] : plugins.problems) {
    text += library.empty() ? fmt::format("{} does not answer: {}\n", node, problem)
                            : fmt::format("{} does not use {}: {}\n", node, library, problem);
  }
  return text;
}

}  // namespace

int run_plugin_list(const Common& common) {
  return with_admin(common, [&](Admin admin) {
    const auto plugins = admin.plugins();
    if (!plugins) return report(plugins.error());
    print(common.json() ? as_json(*plugins) : as_text(*plugins));
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
