#include "placement/settings.h"

#include <algorithm>
#include <fmt/format.h>

#include "text.h"

namespace fjord {
namespace {

constexpr std::array<std::string_view, kPlacementKinds.size()> kNames = {
    "straw2", "uniform", "list", "tree", "rush", "modulo", "consistent", "rendezvous"};
constexpr std::size_t kStepsMax = 64;
constexpr unsigned kLevelMax = 8;

using Action = PlacementStep::Action;

Status invalid(std::string message) { return {StatusCode::InvalidArgument, "placement: " + std::move(message)}; }

/// Removes the text up to and including the separator from `text`; returns the part before the separator.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

/// Returns the text in the brackets of `name(...)`; nothing if `step` has another form.
std::optional<std::string_view> argument_of(std::string_view step, std::string_view name) {
  if (!step.starts_with(name) || !step.ends_with(')')) return std::nullopt;
  step.remove_prefix(name.size());
  if (!step.starts_with('(')) return std::nullopt;
  return step.substr(1, step.size() - 2);
}

Result<PlacementStep> parse_step(std::string_view text) {
  PlacementStep step;
  if (text == "emit") return step;
  if (const auto name = argument_of(text, "take")) {
    step.action = Action::Take;
    step.group = *name;
    return step;
  }
  if (auto arguments = argument_of(text, "select")) {
    step.action = Action::Select;
    const auto count = cluster_text::parse_number<unsigned>(next_part(*arguments, ','));
    if (count && *arguments == "node") {
      step.count = *count;
      return step;
    }
    const auto level = cluster_text::parse_number<unsigned>(*arguments);
    if (count && level) {
      step.count = *count;
      step.level = *level;
      return step;
    }
  }
  return invalid(fmt::format("'{}' is none of take(GROUP), select(COUNT,LEVEL), select(COUNT,node), emit", text));
}

/// Returns the level of the named group; the root has level 0.
std::optional<unsigned> level_of(const DistributionGroup& group, std::string_view name, unsigned level = 0) {
  if (group.name == name) return level;
  for (const DistributionGroup& child : group.groups) {
    if (const auto found = level_of(child, name, level + 1)) return found;
  }
  return std::nullopt;
}

Status check_rule(const std::vector<PlacementStep>& rule, const DistributionGroup& root) {
  if (rule.empty()) return Status::ok();
  if (rule.size() > kStepsMax) return invalid(fmt::format("a rule has at most {} steps", kStepsMax));
  std::optional<unsigned> level;  // Level of the items in the list.
  for (const PlacementStep& step : rule) {
    switch (step.action) {
      case Action::Take:
        if (level) return invalid("the rule takes before it has emitted");
        level = level_of(root, step.group);
        if (!level) return invalid(fmt::format("there is no group '{}' to take", step.group));
        break;
      case Action::Select:
        if (!level) return invalid("the rule selects before it takes");
        if (step.count > kMaxRedundancy) return invalid(fmt::format("select more than {}", kMaxRedundancy));
        if (*level == PlacementStep::kNodeLevel) return invalid("the rule selects below storage nodes");
        if (step.level != PlacementStep::kNodeLevel && (step.level <= *level || step.level > kLevelMax)) {
          return invalid(fmt::format("level {} is not below level {}", step.level, *level));
        }
        level = step.level;
        break;
      case Action::Emit:
        if (level != PlacementStep::kNodeLevel) return invalid("only storage nodes can be emitted");
        level.reset();
        break;
    }
  }
  if (level) return invalid("the rule does not end with emit");
  return Status::ok();
}

std::string print_step(const PlacementStep& step) {
  switch (step.action) {
    case Action::Take:
      return fmt::format("take({})", step.group);
    case Action::Select:
      if (step.level == PlacementStep::kNodeLevel) return fmt::format("select({},node)", step.count);
      return fmt::format("select({},{})", step.count, step.level);
    case Action::Emit:
      return "emit";
  }
  return {};
}

}  // namespace

std::string_view to_string(PlacementKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Result<PlacementKind> placement_kind_of(std::string_view name) {
  for (const PlacementKind kind : kPlacementKinds) {
    if (to_string(kind) == name) return kind;
  }
  return invalid(fmt::format("there is no algorithm '{}'", name));
}

Status parse_algorithm(std::string_view text, PlacementSettings& settings) {
  settings.levels.clear();
  const std::size_t star = text.find('*');
  if (star != std::string_view::npos) {
    const auto tokens = cluster_text::parse_number<unsigned>(text.substr(star + 1));
    if (!tokens || !text.starts_with("consistent*")) return invalid(fmt::format("'{}': expected consistent*N", text));
    settings.tokens_per_node = *tokens;
    text = text.substr(0, star);
  }
  do {
    FJORD_TRY_ASSIGN(const PlacementKind kind, placement_kind_of(next_part(text, ',')));
    settings.levels.push_back(kind);
  } while (!text.empty() && settings.levels.size() <= kLevelMax);
  return Status::ok();
}

Status parse_rule(std::string_view text, PlacementSettings& settings) {
  settings.rule.clear();
  while (!text.empty() && settings.rule.size() <= kStepsMax) {
    FJORD_TRY_ASSIGN(PlacementStep step, parse_step(next_part(text, ';')));
    settings.rule.push_back(std::move(step));
  }
  return Status::ok();
}

Status check_placement(const PlacementSettings& settings, const DistributionGroup& root) {
  if (settings.levels.empty() || settings.levels.size() > kLevelMax) {
    return invalid(fmt::format("algorithms for 1 to {} levels", kLevelMax));
  }
  const bool hierarchical = is_hierarchical(settings.kind());
  for (const PlacementKind kind : settings.levels) {
    if (settings.levels.size() > 1 && !is_hierarchical(kind)) {
      return invalid(fmt::format("'{}' looks at all nodes and goes with no other algorithm", to_string(kind)));
    }
  }
  if (settings.tokens_per_node < 1 || settings.tokens_per_node > PlacementSettings::kTokensMax) {
    return invalid(
        fmt::format("{} tokens are not from 1 to {}", settings.tokens_per_node, PlacementSettings::kTokensMax));
  }
  if (settings.kind() != PlacementKind::Consistent && settings.tokens_per_node != PlacementSettings::kDefaultTokens) {
    return invalid(fmt::format("'{}' knows no tokens", to_string(settings.kind())));
  }
  if (!hierarchical && !settings.rule.empty()) {
    return invalid(fmt::format("'{}' knows no rules", to_string(settings.kind())));
  }
  return check_rule(settings.rule, root);
}

std::string print_placement(const PlacementSettings& settings) {
  std::string out;
  const bool has_tokens =
      settings.kind() == PlacementKind::Consistent && settings.tokens_per_node != PlacementSettings::kDefaultTokens;
  if (settings.levels != PlacementSettings().levels) {
    for (const PlacementKind kind : settings.levels) {
      fmt::format_to(std::back_inserter(out), "{}{}", out.empty() ? "algorithm:" : ",", to_string(kind));
    }
    if (has_tokens) fmt::format_to(std::back_inserter(out), "*{}", settings.tokens_per_node);
    out += ' ';
  }
  if (!settings.rule.empty()) {
    out += "rule:";
    for (std::size_t i = 0; i < settings.rule.size(); ++i) {
      if (i > 0) out += ';';
      out += print_step(settings.rule[i]);
    }
    out += ' ';
  }
  return out;
}

}  // namespace fjord
