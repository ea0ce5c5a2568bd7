#pragma once

#include <string>
#include <vector>

/// The commands and their options as plain values, the source of completion scripts and manual pages.
namespace fjord::cli {

struct ArgumentInfo {
  std::vector<std::string> names;    ///< "-o", "--output"; for a positional argument its placeholder, "FILE".
  std::string value;                 ///< Placeholder of the value, "FORMAT"; empty for a flag.
  std::vector<std::string> choices;  ///< Permitted values; empty: any.
  std::string meaning;
  bool is_required = false;
  bool is_repeated = false;

  bool is_file() const { return value == "FILE"; }
  bool is_folder() const { return value == "DIR"; }
};

struct CommandInfo {
  std::vector<std::string> path;  ///< "fjord", "node", "list".
  std::string meaning;
  std::vector<ArgumentInfo> options;
  std::vector<ArgumentInfo> arguments;  ///< Positional arguments in their order.
  std::vector<CommandInfo> commands;
  std::vector<std::string> notes;
  std::vector<std::string> examples;
  std::string exit_codes;
};

/// Joins the words of the path with `between`.
std::string path_text(const CommandInfo& command, const std::string& between);
/// Returns the command and all its subcommands, in the order of the help texts.
std::vector<const CommandInfo*> all_commands(const CommandInfo& root);

/// Return scripts for the shells that complete commands, options and their values.
std::string bash_completion(const CommandInfo& root);
std::string zsh_completion(const CommandInfo& root);
std::string fish_completion(const CommandInfo& root);

/// Returns the manual page of one command, in the roff macros of man(7).
std::string man_page(const CommandInfo& command);

}  // namespace fjord::cli
