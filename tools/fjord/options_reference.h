#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "command_table.h"

namespace fjord::cli {

/// The commands of `app`, which is complete.
CommandInfo command_table(const CLI::App& app);

struct ReferenceArgs {
  std::string shell;
  std::vector<std::string> command;  ///< man: the words of a command
  std::string directory;             ///< man: for the pages of all commands
};
int run_completion(const CLI::App& app, const ReferenceArgs& args);
int run_man(const CLI::App& app, const ReferenceArgs& args);

}  // namespace fjord::cli
