#include "options/usage.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/config/edit_distance.h"
#include "options/options.h"

namespace fjord::cli {
namespace {

/// What other programs call a command of this one.
struct OtherName {
  std::string_view word;
  std::string_view command;
};
constexpr OtherName kOtherNames[] = {
    {"version", "fjord --version"}, {"top", "fjord status"}, {"health", "fjord status"}, {"delete", "fjord remove"},
    {"rm", "fjord remove"},         {"insert", "fjord put"}, {"load", "fjord import"},   {"count", "fjord aggregate"},
    {"query", "fjord aggregate"},   {"scan", "fjord visit"}, {"list", "fjord visit"}};

/// Returns the words of a command: "fjord node retire".
std::string path_of(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

std::vector<const CLI::App*> subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& apps) {
  std::vector<std::string> names;
  for (const CLI::App* app : apps) names.push_back(app->get_name());
  return names;
}

const CLI::App* subcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* one : subcommands(app)) {
    if (one->get_name() == name) return one;
  }
  return nullptr;
}

/// Returns the command of the line that has words left that it does not know; else the last command of the line.
const CLI::App& command_at_fault(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return !app.remaining().empty() || parsed.empty() ? app : command_at_fault(*parsed.back());
}

/// Returns the number of words that an option of every command takes: 2 for "--cluster X", 1 for "--cluster=X", 0 for
/// another word.
std::size_t words_of_shared_option(const std::string& word) {
  for (const char* name : {"--cluster", "--timeout", "--output"}) {
    if (word == name) return 2;
    if (word.starts_with(std::string(name) + "=")) return 1;
  }
  return word == "-o" ? 2 : word.starts_with("-o") && !word.starts_with("--") ? 1 : 0;
}

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group() == kHidden) continue;
    for (std::string& name : shown_names(*option)) names.push_back(std::move(name));
  }
  return names;
}

/// Adds the paths of the commands of this name anywhere below `app`.
void add_namesakes(const CLI::App& app, const std::string& name, std::vector<std::string>& paths) {
  for (const CLI::App* one : subcommands(app)) {
    if (one->get_name() == name) paths.push_back(path_of(*one));
    add_namesakes(*one, name, paths);
  }
}

std::string no_option_message(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("{} has no option {}{}", path_of(app), name, suggestion(name, option_names(app)));
}

std::string message(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> rest = app.remaining();
  const bool is_group = app.get_require_subcommand_min() > 0;
  // Only options that all commands have: what is missing is the command.
  const bool lacks_command = is_group && (rest.empty() || words_of_shared_option(rest.front()) != 0);
  if (lacks_command) {
    return fmt::format("{} needs a command: {}", path_of(app), fmt::join(names_of(subcommands(app)), ", "));
  }
  const auto option = std::find_if(rest.begin(), rest.end(), is_option);
  if (is_group && option != rest.begin()) return "fjord: " + no_command_message(app, rest.front());
  if (option != rest.end()) return no_option_message(app, *option);
  if (!rest.empty()) return fmt::format("{} does not take the argument \"{}\"", path_of(app), rest.front());
  return fmt::format("{}: {}", path_of(app), error.what());
}

}  // namespace

std::vector<std::string> with_options_behind_command(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> path;
  std::vector<std::string> moved;
  const CLI::App* command = &app;
  std::size_t next = 0;
  while (next < words.size()) {
    const std::size_t count = std::min(words_of_shared_option(words[next]), words.size() - next);
    if (count != 0) {
      for (std::size_t end = next + count; next < end; ++next) moved.push_back(words[next]);
      continue;
    }
    const CLI::App* const below = subcommand(*command, words[next]);
    if (below == nullptr) break;
    command = below;
    path.push_back(words[next++]);
  }
  if (path.empty()) return words;
  path.insert(path.end(), moved.begin(), moved.end());
  path.insert(path.end(), words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  return path;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::size_t farthest = word.size() < 3 ? 1 : word.size() < 8 ? 2 : 3;
  std::size_t best = farthest + 1;
  std::vector<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const bool continues = word.size() >= 3 && candidate.starts_with(word);
    const std::size_t distance = continues ? 1 : config::edit_distance(word, candidate);
    if (distance > std::min(best, farthest) || distance >= candidate.size()) continue;
    // Words as short as commands have something in common with most others.
    if (distance > 1 && word.front() != candidate.front()) continue;
    if (distance < best) nearest.clear();
    best = distance;
    nearest.push_back(candidate);
  }
  return nearest.empty() ? std::string() : fmt::format("; did you mean {}?", fmt::join(nearest, " or "));
}

std::string no_command_message(const CLI::App& group, const std::string& word) {
  const CLI::App* root = &group;
  while (root->get_parent() != nullptr) root = root->get_parent();
  const bool is_root = &group == root;
  std::string text = "there is no command ";
  if (!is_root) text += path_of(group).substr(root->get_name().size() + 1) + " ";
  text += word;
  const std::vector<std::string> names = names_of(subcommands(group));
  std::vector<std::string> namesakes;
  add_namesakes(*root, word, namesakes);
  if (!namesakes.empty()) text += fmt::format("; there is {}", fmt::join(namesakes, ", "));
  if (is_root && !namesakes.empty()) return text;
  const auto* const other = std::find_if(std::begin(kOtherNames), std::end(kOtherNames),
                                         [&](const OtherName& name) { return name.word == word; });
  if (is_root && other != std::end(kOtherNames)) return text + fmt::format("; there is {}", other->command);
  if (const std::string similar = suggestion(word, names); !similar.empty()) return text + similar;
  return text + fmt::format("; {} has {}", path_of(group), fmt::join(names, ", "));
}

Result<const CLI::App*> find_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  for (const std::string& word : words) {
    const CLI::App* const below = subcommand(*command, word);
    if (below != nullptr) {
      command = below;
    } else if (subcommands(*command).empty()) {
      return Status(StatusCode::NotFound,
                    fmt::format("{} has no commands below it, so no {}", path_of(*command), word));
    } else {
      return Status(StatusCode::NotFound, no_command_message(*command, word));
    }
  }
  return command;
}

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = command_at_fault(app);
  return fmt::format("{}\n{} --help shows what is possible\n", message(command, error), path_of(command));
}

}  // namespace fjord::cli
