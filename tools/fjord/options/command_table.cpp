#include "options/command_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fjord::cli {

std::string path_text(const CommandInfo& command, const std::string& between) {
  return fmt::format("{}", fmt::join(command.path, between));
}

std::vector<const CommandInfo*> all_commands(const CommandInfo& root) {
  std::vector<const CommandInfo*> all = {&root};
  for (const CommandInfo& command : root.commands) {
    for (const CommandInfo* one : all_commands(command)) all.push_back(one);
  }
  return all;
}

}  // namespace fjord::cli
