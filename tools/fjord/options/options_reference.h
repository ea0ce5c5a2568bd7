#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "options/command_table.h"

namespace fjord::cli {

/// Returns the commands of `app`, which must be complete.
CommandInfo command_table(const CLI::App& app);

struct ReferenceArgs {
  std::string shell;
  std::vector<std::string> command;  ///< For man and help: the words of a command; for help also a topic.
  std::string directory;             ///< For man: output folder for the pages of all commands.
};
int run_completion(const CLI::App& app, const ReferenceArgs& args);
int run_help(const CLI::App& app, const ReferenceArgs& args);
int run_man(const CLI::App& app, const ReferenceArgs& args);

}  // namespace fjord::cli
