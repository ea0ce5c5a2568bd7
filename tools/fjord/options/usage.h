#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::cli {

/// Moves the options of every cluster command (--cluster, --timeout, -o) that stand before or between the words of a
/// command behind them: `fjord --cluster X job list` becomes `fjord job list --cluster X`. `words` are those after the
/// name of the program.
std::vector<std::string> with_options_behind_command(const CLI::App& app, const std::vector<std::string>& words);

/// Returns the lines for standard error about a command line that `app` could not parse. They name the wrong word, and
/// what is similar to it.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

/// Returns "; did you mean A or B?" for the candidates that are similar to `word`; empty if none is.
std::string suggestion(const std::string& word, const std::vector<std::string>& candidates);
/// Returns the message that `group` has no subcommand `word`, with similar commands, or all of the group.
std::string no_command_message(const CLI::App& group, const std::string& word);
/// Returns the command with this path below `app`; `app` for no words. Errors: NotFound with no_command_message().
Result<const CLI::App*> find_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace fjord::cli
