#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/command_table.h"

namespace fjord::cli {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

/// Quotes any text as one word for bash and zsh.
std::string shell_quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }
/// Quotes for fish, where a backslash is special inside quotes.
std::string fish_quoted(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::vector<std::string> names_of(const std::vector<CommandInfo>& commands) {
  std::vector<std::string> names;
  for (const CommandInfo& command : commands) names.push_back(command.path.back());
  return names;
}

std::vector<std::string> names_of(const std::vector<ArgumentInfo>& options) {
  std::vector<std::string> names;
  for (const ArgumentInfo& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

/// Returns the first argument with known values; null without one.
const ArgumentInfo* known_argument(const CommandInfo& command) {
  for (const ArgumentInfo& one : command.arguments) {
    if (one.is_file() || one.is_folder() || !one.choices.empty()) return &one;
  }
  return nullptr;
}

// --- bash --------------------------------------------------------------------------------------------------------

constexpr const char* kBashBegin = R"sh(# Completion of fjord for bash: eval "$(fjord completion bash)"

_fjord_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$current")
}

_fjord_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$current")
}

_fjord() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=fjord word i
  COMPREPLY=()
  # --option=value is three words here.
  if [[ $current == '=' ]]; then
    current=
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="$command ${COMP_WORDS[i]}"
    case $word in
)sh";

constexpr const char* kBashEnd = R"sh(}

complete -F _fjord fjord
)sh";

/// Returns the bash command that completes the value of an option or argument; empty without one.
std::string bash_values(const ArgumentInfo& argument) {
  if (!argument.choices.empty()) return fmt::format("_fjord_words '{}'", fmt::join(argument.choices, " "));
  if (argument.is_file()) return "_fjord_files -f";
  return argument.is_folder() ? "_fjord_files -d" : "";
}

/// Returns the case branches of the options that have a value.
std::string bash_option_cases(const CommandInfo& command) {
  std::string text;
  for (const ArgumentInfo& option : command.options) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(shell_quoted(path_text(command, " ") + " " + name));
    const std::string values = bash_values(option);
    text += fmt::format("    {}) {}return ;;\n", fmt::join(patterns, "|"), values.empty() ? "" : values + "; ");
  }
  return text;
}

std::string bash_command_case(const CommandInfo& command) {
  std::string text = fmt::format("    {})\n", shell_quoted(path_text(command, " ")));
  text +=
      fmt::format("      if [[ $current == -* ]]; then _fjord_words '{}'\n", fmt::join(names_of(command.options), " "));
  std::string otherwise;
  if (!command.commands.empty()) {
    otherwise = fmt::format("_fjord_words '{}'", fmt::join(names_of(command.commands), " "));
  } else if (const ArgumentInfo* known = known_argument(command); known != nullptr) {
    otherwise = bash_values(*known);
  }
  if (!otherwise.empty()) text += "      else " + otherwise + "\n";
  return text + "      fi ;;\n";
}

// --- zsh ---------------------------------------------------------------------------------------------------------

/// Escapes text inside the specification of an argument.
std::string zsh_text(std::string text) {
  for (const char* special : {"\\", "[", "]", ":"}) text = replaced(text, special, std::string("\\") + special);
  return text;
}

std::string zsh_values(const ArgumentInfo& argument) {
  if (!argument.choices.empty()) return fmt::format("({})", fmt::join(argument.choices, " "));
  if (argument.is_file()) return "_files";
  // "{ : }" offers no values, and zsh still completes names of options there. With " " it would show what value is
  // expected, and complete nothing.
  return argument.is_folder() ? "_files -/" : "{ : }";
}

std::string zsh_option(const ArgumentInfo& option) {
  const bool is_alone = option.names.size() == 1;
  std::string text = option.is_repeated ? "'*'" : is_alone ? "" : fmt::format("'({})'", fmt::join(option.names, " "));
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    names.push_back(name + (option.value.empty() ? "" : name.starts_with("--") ? "=" : "+"));
  }
  text += is_alone ? names.front() : fmt::format("{{{}}}", fmt::join(names, ","));
  std::string rest = "[" + zsh_text(option.meaning) + "]";
  if (!option.value.empty()) rest += ":" + zsh_text(option.value) + ":" + zsh_values(option);
  return text + shell_quoted(rest);
}

std::string zsh_function(const CommandInfo& command) { return "_" + replaced(path_text(command, "_"), "-", "_"); }

std::string zsh_definition(const CommandInfo& command) {
  std::string text = zsh_function(command) + "() {\n";
  if (!command.commands.empty()) text += "  local line state\n";
  text += "  _arguments -s";
  if (!command.commands.empty()) text += " -C";
  for (const ArgumentInfo& option : command.options) text += " \\\n    " + zsh_option(option);
  if (command.commands.empty()) {
    for (const ArgumentInfo& argument : command.arguments) {
      const std::string begin = argument.is_repeated ? "*:" : ":";
      text += " \\\n    " + shell_quoted(begin + zsh_text(argument.names.front()) + ":" + zsh_values(argument));
    }
    return text + "\n}\n\n";
  }
  text += " \\\n    '1:command:->command' \\\n    '*::argument:->argument'\n";
  text += "  case $state in\n    command)\n      local -a commands\n      commands=(\n";
  for (const CommandInfo& one : command.commands) {
    text += "        " + shell_quoted(zsh_text(one.path.back()) + ":" + one.meaning) + "\n";
  }
  text += "      )\n      _describe command commands ;;\n    argument)\n      case $line[1] in\n";
  for (const CommandInfo& one : command.commands) {
    text += fmt::format("        {}) {} ;;\n", one.path.back(), zsh_function(one));
  }
  return text + "      esac ;;\n  esac\n}\n\n";
}

// --- fish --------------------------------------------------------------------------------------------------------

constexpr const char* kFishBegin = R"sh(# Completion of fjord for fish: fjord completion fish | source

# True if the words before the cursor are of this command.
function __fjord_at
    set -l command fjord
    for word in (commandline -opc)[2..-1]
        contains -- "$command $word" $__fjord_commands; and set command "$command $word"
    end
    test "$command" = "$argv[1]"
end

complete -c fjord -f
)sh";

std::string fish_values(const ArgumentInfo& argument) {
  if (!argument.choices.empty()) return " -x -a " + fish_quoted(fmt::format("{}", fmt::join(argument.choices, " ")));
  if (argument.is_file()) return " -r -F";
  if (argument.is_folder()) return " -x -a '(__fish_complete_directories)'";
  return argument.value.empty() ? "" : " -x";
}

std::string fish_lines(const CommandInfo& command) {
  const std::string begin =
      "complete -c fjord -n " + fish_quoted("__fjord_at " + shell_quoted(path_text(command, " ")));
  std::string text;
  for (const ArgumentInfo& option : command.options) {
    text += begin;
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += fish_values(option) + " -d " + fish_quoted(option.meaning) + "\n";
  }
  for (const CommandInfo& one : command.commands) {
    text += begin + " -a " + fish_quoted(one.path.back()) + " -d " + fish_quoted(one.meaning) + "\n";
  }
  if (!command.commands.empty()) return text;
  const ArgumentInfo* known = known_argument(command);
  if (known == nullptr) return text;
  if (!known->choices.empty()) {
    return text + begin + " -a " + fish_quoted(fmt::format("{}", fmt::join(known->choices, " "))) + "\n";
  }
  return text + begin + (known->is_file() ? " -F\n" : " -a '(__fish_complete_directories)'\n");
}

}  // namespace

std::string bash_completion(const CommandInfo& root) {
  std::string patterns;
  std::string options;
  std::string commands;
  for (const CommandInfo* command : all_commands(root)) {
    if (command != &root) patterns += "      " + shell_quoted(path_text(*command, " ")) + ") command=$word ;;\n";
    options += bash_option_cases(*command);
    commands += bash_command_case(*command);
  }
  return kBashBegin + patterns + "    esac\n  done\n  case \"$command $previous\" in\n" + options +
         "  esac\n  case $command in\n" + commands + "  esac\n" + kBashEnd;
}

std::string zsh_completion(const CommandInfo& root) {
  std::string text = "#compdef fjord\n# Completion of fjord for zsh: source <(fjord completion zsh)\n\n";
  for (const CommandInfo* command : all_commands(root)) text += zsh_definition(*command);
  // The text works as an autoloaded function and as a sourced file.
  return text + "if [[ $funcstack[1] == _fjord ]]; then\n  _fjord \"$@\"\nelse\n  compdef _fjord fjord\nfi\n";
}

std::string fish_completion(const CommandInfo& root) {
  std::string names;
  std::string lines;
  for (const CommandInfo* command : all_commands(root)) {
    names += " \\\n    " + fish_quoted(path_text(*command, " "));
    lines += fish_lines(*command);
  }
  return kFishBegin + ("set -g __fjord_commands" + names) + "\n\n" + lines;
}

}  // namespace fjord::cli
