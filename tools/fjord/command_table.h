#pragma once

#include <string>
#include <vector>

/// What the commands are called with, as plain values: completion scripts and man pages are made from it.
namespace fjord::cli {

struct ArgumentInfo {
  std::vector<std::string> names;    ///< "-o", "--output"; for an argument without a name what it stands for, "FILE".
  std::string value;                 ///< What the value is, "FORMAT"; empty for a flag.
  std::vector<std::string> choices;  ///< The values that there are; empty: any.
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
  std::vector<ArgumentInfo> arguments;  ///< Without names, in their order.
  std::vector<CommandInfo> commands;
  std::vector<std::string> notes;
  std::vector<std::string> examples;
  std::string exit_codes;
};

/// The words of the path with `between` in between.
std::string path_text(const CommandInfo& command, const std::string& between);
/// The command and all below it, in the order of the help texts.
std::vector<const CommandInfo*> all_commands(const CommandInfo& root);

/// Scripts for the shells, which complete commands, options and their values.
std::string bash_completion(const CommandInfo& root);
std::string zsh_completion(const CommandInfo& root);
std::string fish_completion(const CommandInfo& root);

/// The page of one command for man(1), in the language of roff's macro package man.
std::string man_page(const CommandInfo& command);

}  // namespace fjord::cli
