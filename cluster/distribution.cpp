#include "fjord/cluster/distribution.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <unordered_set>

#include "fjord/cluster/node.h"
#include "fjord/common/hash.h"
#include "placement/settings.h"
#include "text.h"

namespace fjord {
namespace {

constexpr unsigned kMaxTreeDepth = 8;
/// Bit that is set in ids of groups. Ids of nodes do not have it, so no group gets the same random draws as a node.
constexpr std::uint64_t kGroupIdBit = std::uint64_t{1} << 63;

Status invalid(std::string message) { return {StatusCode::InvalidArgument, "distribution: " + std::move(message)}; }

bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_name_char(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.';
}

bool is_name(std::string_view text) {
  return !text.empty() && is_name_start(text[0]) && std::all_of(text.begin(), text.end(), is_name_char);
}

bool is_capacity(double value) { return value >= 0.0 && value <= 1e6; }

class Checker {
 public:
  Status check(const DistributionGroup& group, unsigned depth) {
    if (depth > kMaxTreeDepth)
      return invalid(fmt::format("group '{}' is deeper than {} levels", group.name, kMaxTreeDepth));
    if (!is_name(group.name)) return invalid(fmt::format("not a name of a group: '{}'", group.name));
    if (!names_.insert(group.name).second) return invalid(fmt::format("group '{}' occurs twice", group.name));
    if (!is_capacity(group.capacity))
      return invalid(fmt::format("capacity of group '{}' is not from 0 to 1e6", group.name));
    if (!group.nodes.empty() && !group.groups.empty()) {
      return invalid(fmt::format("group '{}' holds both nodes and groups", group.name));
    }
    for (const DistributionGroup::Node& node : group.nodes) {
      if (node.index >= kMaxNodeCount)
        return invalid(fmt::format("node {} is not below {}", node.index, kMaxNodeCount));
      if (!nodes_.insert(node.index).second) return invalid(fmt::format("node {} occurs twice", node.index));
      if (!is_capacity(node.capacity))
        return invalid(fmt::format("capacity of node {} is not from 0 to 1e6", node.index));
    }
    for (const DistributionGroup& child : group.groups) FJORD_TRY(check(child, depth + 1));
    return Status::ok();
  }

 private:
  std::unordered_set<std::string> names_;
  std::unordered_set<std::uint16_t> nodes_;
};

class TextParser {
 public:
  explicit TextParser(std::string_view text) : text_(text) {}

  struct Parsed {
    unsigned redundancy = 1;
    PlacementSettings placement;
    DistributionGroup root;
  };

  Result<Parsed> parse() {
    Parsed parsed;
    skip_space();
    constexpr std::string_view kKey = "redundancy:";
    if (!text_.substr(at_).starts_with(kKey)) return expected("'redundancy:'");
    at_ += kKey.size();
    const auto redundancy = cluster_text::parse_number<unsigned>(take(is_number_char));
    if (!redundancy) return expected("a number of replicas");
    parsed.redundancy = *redundancy;
    for (skip_space(); peek() != '(' && at_ < text_.size(); skip_space()) FJORD_TRY(read_option(parsed.placement));
    FJORD_TRY(read_group(parsed.root, 1));
    skip_space();
    if (at_ < text_.size()) return expected("the end");
    return parsed;
  }

 private:
  static bool is_number_char(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
  static bool is_capacity_char(char c) { return is_number_char(c) || c == '.' || c == 'e' || c == '+' || c == '-'; }

  Status expected(std::string_view what) const { return invalid(fmt::format("column {}: expected {}", at_ + 1, what)); }
  void skip_space() {
    take([](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  template <typename Predicate>
  std::string_view take(Predicate is_part) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Status read_option(PlacementSettings& placement) {
    const std::size_t begin = at_;
    const std::string_view token = take([](char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; });
    const auto within = [&](Status status) {
      return status ? status : status.with_context(fmt::format("distribution: column {}", begin + 1));
    };
    if (token.starts_with("algorithm:")) return within(parse_algorithm(token.substr(10), placement));
    if (token.starts_with("rule:")) return within(parse_rule(token.substr(5), placement));
    at_ = begin;
    return expected("'('");
  }

  Status read_capacity(double& capacity) {
    if (peek() != '*') return Status::ok();
    ++at_;
    const auto value = cluster_text::parse_amount(take(is_capacity_char));
    if (!value) return expected("a capacity, which is not negative");
    capacity = *value;
    return Status::ok();
  }

  Status read_group(DistributionGroup& group, unsigned depth) {
    if (peek() != '(') return expected("'('");
    if (depth > kMaxTreeDepth) return expected(fmt::format("at most {} levels of groups", kMaxTreeDepth));
    ++at_;
    group.name = take(is_name_char);
    if (!is_name(group.name)) return expected("the name of a group");
    FJORD_TRY(read_capacity(group.capacity));
    for (skip_space(); peek() != ')'; skip_space()) {
      if (peek() == '(') {
        FJORD_TRY(read_group(group.groups.emplace_back(), depth + 1));
      } else {
        FJORD_TRY(read_nodes(group.nodes));
      }
    }
    ++at_;
    return Status::ok();
  }

  Status read_nodes(std::vector<DistributionGroup::Node>& nodes) {
    const auto first = cluster_text::parse_number<std::uint16_t>(take(is_number_char));
    if (!first) return expected("a node index, a group or ')'");
    std::uint16_t last = *first;
    if (peek() == '-') {
      ++at_;
      const auto end = cluster_text::parse_number<std::uint16_t>(take(is_number_char));
      if (!end || *end < *first) return expected("the last node index of a range");
      last = *end;
    }
    double capacity = 1.0;
    FJORD_TRY(read_capacity(capacity));
    for (unsigned index = *first; index <= last; ++index) {
      if (nodes.size() > kMaxNodeCount) return expected("fewer nodes");
      nodes.push_back({static_cast<std::uint16_t>(index), capacity});
    }
    return Status::ok();
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

void print_capacity(std::string& out, double capacity) {
  if (capacity != 1.0) fmt::format_to(std::back_inserter(out), "*{}", capacity);
}

void print_group(std::string& out, const DistributionGroup& group) {
  out += '(';
  out += group.name;
  print_capacity(out, group.capacity);
  for (const DistributionGroup::Node& node : group.nodes) {
    fmt::format_to(std::back_inserter(out), " {}", node.index);
    print_capacity(out, node.capacity);
  }
  for (const DistributionGroup& child : group.groups) {
    out += ' ';
    print_group(out, child);
  }
  out += ')';
}

bool is_redundancy(unsigned redundancy) { return redundancy >= 1 && redundancy <= kMaxRedundancy; }

}  // namespace

DistributionConfig::DistributionConfig() : DistributionConfig(1, DistributionGroup{"root", 1.0, {}, {}}) {}

DistributionConfig::DistributionConfig(unsigned redundancy, DistributionGroup root)
    : redundancy_(redundancy), root_(std::move(root)) {
  flatten(root_);
}

std::uint64_t DistributionConfig::group_id(std::string_view name) { return hash64(name) | kGroupIdBit; }

void DistributionConfig::flatten(const DistributionGroup& group) {
  const std::size_t position = flat_groups_.size();
  FlatGroup flat;
  flat.id = group_id(group.name);
  flat.capacity = group.capacity;
  flat.first_node = static_cast<std::uint32_t>(flat_nodes_.size());
  flat.is_leaf = group.groups.empty();
  flat_groups_.push_back(flat);
  flat_nodes_.insert(flat_nodes_.end(), group.nodes.begin(), group.nodes.end());
  for (const DistributionGroup& child : group.groups) flatten(child);
  flat_groups_[position].node_end = static_cast<std::uint32_t>(flat_nodes_.size());
  flat_groups_[position].group_end = static_cast<std::uint32_t>(flat_groups_.size());
}

Result<DistributionConfig> DistributionConfig::make(unsigned redundancy, DistributionGroup root) {
  if (!is_redundancy(redundancy)) {
    return invalid(fmt::format("redundancy {} is not from 1 to {}", redundancy, kMaxRedundancy));
  }
  FJORD_TRY(Checker().check(root, 1));
  return DistributionConfig(redundancy, std::move(root));
}

Result<DistributionConfig> DistributionConfig::parse(std::string_view text) {
  FJORD_TRY_ASSIGN(auto parsed, TextParser(text).parse());
  FJORD_TRY_ASSIGN(DistributionConfig config, make(parsed.redundancy, std::move(parsed.root)));
  return config.with_placement(std::move(parsed.placement));
}

DistributionConfig DistributionConfig::flat(std::uint16_t node_count, unsigned redundancy) {
  FJORD_CHECK(is_redundancy(redundancy));
  DistributionGroup root{"root", 1.0, {}, {}};
  for (std::uint16_t index = 0; index < node_count; ++index) root.nodes.push_back({index, 1.0});
  return {redundancy, std::move(root)};
}

bool DistributionConfig::contains_node(std::uint16_t index) const {
  return std::any_of(flat_nodes_.begin(), flat_nodes_.end(), [&](const auto& node) { return node.index == index; });
}

DistributionConfig DistributionConfig::with_redundancy(unsigned redundancy) const {
  FJORD_CHECK(is_redundancy(redundancy));
  DistributionConfig copy = *this;
  copy.redundancy_ = redundancy;
  return copy;
}

Result<DistributionConfig> DistributionConfig::with_placement(PlacementSettings placement) const {
  FJORD_TRY(check_placement(placement, root_));
  DistributionConfig copy = *this;
  copy.placement_ = std::move(placement);
  return copy;
}

std::string DistributionConfig::to_string() const {
  std::string out = fmt::format("redundancy:{} {}", redundancy_, print_placement(placement_));
  print_group(out, root_);
  return out;
}

}  // namespace fjord
