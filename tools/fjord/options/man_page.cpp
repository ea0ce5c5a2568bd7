#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/version/version.h"
#include "options/command_table.h"

namespace fjord::cli {
namespace {

/// Escapes plain text, so that no character has a meaning for roff.
std::string plain(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '`') {
      escaped += "\\(ga";
    } else if (c == '^') {
      escaped += "\\(ha";
    } else if (c == '~') {
      escaped += "\\(ti";
    } else {
      escaped += c;
    }
  }
  return escaped.starts_with('.') ? "\\&" + escaped : escaped;
}

std::string bold(const std::string& text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + plain(text) + "\\fR"; }

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string reference_to(const CommandInfo& command) { return bold(path_text(command, "-")) + "(1)"; }

std::string synopsis(const CommandInfo& command) {
  std::string text = bold(path_text(command, " ")) + " [" + italic("OPTIONS") + "]";
  for (const ArgumentInfo& argument : command.arguments) {
    const std::string one = italic(argument.names.front()) + (argument.is_repeated ? " ..." : "");
    text += argument.is_required ? " " + one : " [" + one + "]";
  }
  if (!command.commands.empty()) text += " " + italic("COMMAND");
  return text + "\n";
}

std::string argument_text(const ArgumentInfo& argument) {
  std::vector<std::string> names;
  const bool has_name = argument.names.front().starts_with('-');
  for (const std::string& name : argument.names) names.push_back(has_name ? bold(name) : italic(name));
  std::string text = ".TP\n" + fmt::format("{}", fmt::join(names, ", "));
  if (has_name && !argument.value.empty()) text += " " + italic(argument.value);
  if (argument.is_repeated) text += " ...";
  text += "\n" + plain(argument.meaning) + ".\n";
  if (!argument.choices.empty()) {
    text += fmt::format("One of: {}.\n", plain(fmt::format("{}", fmt::join(argument.choices, ", "))));
  }
  if (has_name && argument.is_required) text += "Has to be given.\n";
  return text;
}

std::string section(const std::string& title, const std::string& text) {
  return text.empty() ? std::string() : ".SH " + title + "\n" + text;
}

std::string commands_text(const CommandInfo& command) {
  std::string text;
  for (const CommandInfo& one : command.commands) {
    text += ".TP\n" + bold(one.path.back()) + "\n" + plain(one.meaning) + ": " + reference_to(one) + ".\n";
  }
  return text;
}

std::string examples_text(const std::vector<std::string>& examples) {
  std::string text;
  for (const std::string& example : examples) text += ".PP\n.nf\n" + plain(example) + "\n.fi\n";
  return text;
}

std::string arguments_text(const std::vector<ArgumentInfo>& arguments) {
  std::string text;
  for (const ArgumentInfo& argument : arguments) text += argument_text(argument);
  return text;
}

std::string see_also(const CommandInfo& command) {
  if (command.path.size() == 1) return {};
  CommandInfo parent;
  parent.path.assign(command.path.begin(), command.path.end() - 1);
  return reference_to(parent) + "\n";
}

}  // namespace

std::string man_page(const CommandInfo& command) {
  const std::string name = path_text(command, "-");
  std::string page = fmt::format(".TH {} 1 \"\" \"fjord {}\" \"Fjord\"\n", upper(name), version());
  // Switches off hyphenation and justification, so that options stay as they are written.
  page += ".nh\n.ad l\n";
  page += section("NAME", plain(name) + " \\- " + plain(command.meaning) + "\n");
  page += section("SYNOPSIS", synopsis(command));
  std::string description = plain(command.meaning) + ".\n";
  for (const std::string& note : command.notes) description += ".PP\n" + plain(note) + "\n";
  page += section("DESCRIPTION", description);
  page += section("COMMANDS", commands_text(command));
  page += section("ARGUMENTS", arguments_text(command.arguments));
  page += section("OPTIONS", arguments_text(command.options));
  if (!command.exit_codes.empty()) page += section("\"EXIT STATUS\"", plain(command.exit_codes) + ".\n");
  page += section("EXAMPLES", examples_text(command.examples));
  return page + section("\"SEE ALSO\"", see_also(command));
}

}  // namespace fjord::cli
