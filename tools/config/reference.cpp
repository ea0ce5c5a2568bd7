// Generates the reference page of the keys for users from the table of keys.

#include <fmt/format.h>

#include "keys.h"

namespace fjord::config {
namespace {

std::string default_text(const Key& key) {
  if (key.required) return "required";
  if (key.default_value.empty()) return "empty";
  return key.default_value;
}

std::string help_text(const Key& key, const char* quote) {
  const std::string live = live_setting_of(key.path);
  if (live.empty()) return key.help;
  return fmt::format("{} While the cluster runs: {}{}{}.", key.help, quote, live, quote);
}

constexpr std::string_view kExample = R"(cluster:
  redundancy: 2
fleetcontroller:
  address: 127.0.0.1:19149
  directory: fleetcontroller.0
distributors:
  - address: 127.0.0.1:19100
storage:
  - address: 127.0.0.1:19150
    http: 127.0.0.1:19250
    directory: storage.0
  - address: 127.0.0.1:19151
    directory: storage.1
storage_options:
  durability: sync
)";

}  // namespace

std::string reference_page() {
  std::string page =
      "# Configuration\n\n"
      "One YAML file describes a cluster; every process is given the same file and its own name:\n"
      "`fjordd --config cluster.yaml --node storage.2`. `fjord local start` writes such a file. An unknown key or a "
      "value\n"
      "that does not fit stops the start with a message that names file, line, key and value. Relative folders are "
      "taken\n"
      "from the folder of the file.\n\n"
      "This page is printed by `fjordd --help-config=markdown`.\n\n"
      "```yaml\n";
  page += kExample;
  page += "```\n";
  for (const Section& section : sections()) {
    page += fmt::format("\n## {}\n\n{}\n\n| Key | Value | Default | Meaning |\n|---|---|---|---|\n",
                        section.name.empty() ? "Top level" : "`" + section.name + "`", section.help);
    for (const Key& key : keys()) {
      if (section_of(key.path) != section.name) continue;
      page +=
          fmt::format("| `{}` | {} | {} | {} |\n", key.path, type_text(key), default_text(key), help_text(key, "`"));
    }
  }
  return page;
}

std::string reference_text() {
  std::string text = "Keys of the configuration file (YAML). For example:\n\n";
  text += kExample;
  for (const Section& section : sections()) {
    text += fmt::format("\n{} - {}\n", section.name.empty() ? "Top level" : section.name, section.help);
    for (const Key& key : keys()) {
      if (section_of(key.path) != section.name) continue;
      text += fmt::format("  {}\n      {}; default: {}\n      {}\n", key.path, type_text(key), default_text(key),
                          help_text(key, ""));
    }
  }
  return text;
}

}  // namespace fjord::config
