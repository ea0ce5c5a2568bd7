#include "options/options_reference.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

#include "options/help_topics.h"
#include "options/options.h"
#include "options/usage.h"

namespace fjord::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

/// Splits a type of CLI11, "FORMAT:{text,json}", whose part after the colon describes the checks.
void take_type(const std::string& type, ArgumentInfo& info) {
  info.value = type.substr(0, type.find(':'));
  const std::size_t open = type.find(":{");
  const std::size_t close = type.find('}');
  if (open == std::string::npos || close == std::string::npos) return;
  info.choices = split(type.substr(open + 2, close - open - 2), ',');
}

ArgumentInfo argument_info(const CLI::Option& option) {
  ArgumentInfo info;
  if (option.get_items_expected_max() > 0) take_type(option.get_type_name(), info);
  info.names = shown_names(option);
  if (info.names.empty()) {
    info.names.push_back(option.get_name(true));
    if (info.value == "TEXT" || info.value == "UINT") info.value = info.names.front();
  }
  info.meaning = option.get_description();
  info.is_required = option.get_required();
  info.is_repeated = option.get_items_expected_max() > 1;
  return info;
}

/// Adds the examples, exit codes and notes in the footer of the help text to `info`.
void take_footer(const std::string& footer, CommandInfo& info) {
  bool in_examples = false;
  for (const std::string& line : split(footer, '\n')) {
    if (line == "Example:" || line == "Examples:") {
      in_examples = true;
    } else if (in_examples && line.starts_with("  ")) {
      info.examples.push_back(line.substr(2));
    } else if (line.starts_with("Exit codes: ")) {
      info.exit_codes = line.substr(12);
    } else if (!line.empty()) {
      info.notes.push_back(line);
    }
  }
}

CommandInfo command_info(const CLI::App& app, std::vector<std::string> path) {
  CommandInfo info;
  path.push_back(app.get_name());
  info.path = std::move(path);
  info.meaning = app.get_description();
  while (!info.meaning.empty() && info.meaning.back() == '.') info.meaning.pop_back();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == kHidden) continue;
    const bool has_name = !option->get_snames().empty() || !option->get_lnames().empty();
    (has_name ? info.options : info.arguments).push_back(argument_info(*option));
  }
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(command_info(*one, info.path));
  }
  take_footer(app.get_footer(), info);
  return info;
}

std::string page_name(const CommandInfo& command) { return path_text(command, "-") + ".1"; }

Status write_pages(const CommandInfo& root, const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  for (const CommandInfo* command : all_commands(root)) {
    const std::string path = directory + "/" + page_name(*command);
    std::ofstream out(path, std::ios::trunc);
    out << man_page(*command);
    out.close();
    if (!out) return {StatusCode::IoError, path + ": cannot be written"};
  }
  return Status::ok();
}

}  // namespace

CommandInfo command_table(const CLI::App& app) { return command_info(app, {}); }

int run_completion(const CLI::App& app, const ReferenceArgs& args) {
  const CommandInfo root = command_table(app);
  print(args.shell == "bash"  ? bash_completion(root)
        : args.shell == "zsh" ? zsh_completion(root)
                              : fish_completion(root));
  return kOk;
}

int run_man(const CLI::App& app, const ReferenceArgs& args) {
  const CommandInfo root = command_table(app);
  if (!args.directory.empty()) {
    const Status status = write_pages(root, args.directory);
    return status ? static_cast<int>(kOk) : report(status);
  }
  if (const auto found = find_command(app, args.command); !found) return report(found.error());
  std::vector<std::string> path = {root.path.front()};
  path.insert(path.end(), args.command.begin(), args.command.end());
  for (const CommandInfo* command : all_commands(root)) {
    if (command->path == path) print(man_page(*command));
  }
  return kOk;
}

int run_help(const CLI::App& app, const ReferenceArgs& args) {
  const std::string word = args.command.empty() ? std::string() : args.command.front();
  if (const HelpTopic* topic = args.command.size() == 1 ? find_topic(word) : nullptr; topic != nullptr) {
    print(topic->text);
    return kOk;
  }
  const auto command = find_command(app, args.command);
  if (!command) {
    complain(command.error().message() + "; topics are " + topic_names());
    return exit_code(command.error());
  }
  std::string path = app.get_name();
  for (const std::string& one : args.command) path += " " + one;
  print((*command)->get_formatter()->make_help(*command, path, CLI::AppFormatMode::Normal));
  return kOk;
}

void add_reference(CLI::App& app, ReferenceArgs& args, Action& action) {
  CLI::App* completion = command(app, "completion", "Prints a script with which a shell completes commands and options",
                                 "eval \"$(fjord completion bash)\"\n"
                                 "  fjord completion zsh > \"${fpath[1]}/_fjord\"\n"
                                 "  fjord completion fish > ~/.config/fish/completions/fjord.fish");
  completion->add_option("SHELL", args.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  completion->callback([&] { action = [&] { return run_completion(app, args); }; });
  CLI::App* man = command(app, "man", "Prints the manual page of a command, or writes those of all",
                          "fjord man node retire | man -l -\n  fjord man --dir ~/.local/share/man/man1");
  CLI::App* help = command(app, "help", "Prints the help text of a command, or about a topic",
                           "fjord help node retire\n  fjord help selections");
  help->add_option("WORD", args.command,
                   "The words of a command, or a topic: " + topic_names() + " (default: fjord itself)");
  help->callback([&] { action = [&] { return run_help(app, args); }; });
  man->add_option("COMMAND", args.command, "The words of the command (default: fjord itself)");
  man->add_option("--dir", args.directory, "Write the pages of all commands into this folder")->type_name("DIR");
  man->callback([&] {
    if (!args.command.empty() && !args.directory.empty()) throw CLI::ExcludesError("--dir", "COMMAND");
    action = [&] { return run_man(app, args); };
  });
}

}  // namespace fjord::cli
