#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <optional>

#include "fjord/cluster/cluster_state.h"
#include "node_state_keys.h"
#include "text.h"

namespace fjord {
namespace {

struct StateName {
  NodeState state;
  char letter;
  int rank;
  std::string_view name;
};

constexpr std::array<StateName, 6> kStateNames = {{{NodeState::Up, 'u', 5, "up"},
                                                   {NodeState::Initializing, 'i', 3, "initializing"},
                                                   {NodeState::Down, 'd', 1, "down"},
                                                   {NodeState::Retired, 'r', 4, "retired"},
                                                   {NodeState::Maintenance, 'm', 0, "maintenance"},
                                                   {NodeState::Stopping, 's', 2, "stopping"}}};

const StateName& name_of(NodeState state) {
  for (const StateName& name : kStateNames) {
    if (name.state == state) return name;
  }
  check_failed(__FILE__, __LINE__, "known node state");
}

Status bad_value(std::string_view key, std::string_view value, std::string_view expected) {
  return {StatusCode::InvalidArgument, fmt::format("not a value of '{}': '{}' (expected {})", key, value, expected)};
}

/// Reads "3,10-12,15": alive since version 3, not available from 10 until before 12, and since 15.
std::optional<NodePast> parse_past(std::string_view text) {
  NodePast past;
  std::size_t end = std::min(text.find(','), text.size());
  const auto alive = cluster_text::parse_number<std::uint64_t>(text.substr(0, end));
  if (!alive) return std::nullopt;
  past.alive_since_version = *alive;
  while (end < text.size()) {
    text.remove_prefix(end + 1);
    end = std::min(text.find(','), text.size());
    const std::string_view one = text.substr(0, end);
    const std::size_t dash = std::min(one.find('-'), one.size());
    const auto from = cluster_text::parse_number<std::uint64_t>(one.substr(0, dash));
    const bool is_over = dash < one.size();
    const auto until = cluster_text::parse_number<std::uint64_t>(is_over ? one.substr(dash + 1) : one);
    const std::uint64_t before = past.absences.empty() ? 0 : past.absences.back().until;
    const bool follows_open = !past.absences.empty() && before == 0;
    if (!from || !until || follows_open || *from < before || (is_over && *until <= *from)) return std::nullopt;
    past.absences.push_back({*from, is_over ? *until : 0});
  }
  return past;
}

std::string print_past(const NodePast& past) {
  std::string out = fmt::format("{}", past.alive_since_version);
  for (const Absence& absence : past.absences) {
    fmt::format_to(std::back_inserter(out), ",{}", absence.from);
    if (absence.until != 0) fmt::format_to(std::back_inserter(out), "-{}", absence.until);
  }
  return out;
}

}  // namespace

void NodePast::add(Absence absence) {
  absences.push_back(absence);
  if (absences.size() <= kAbsencesMax) return;
  alive_since_version = std::max(alive_since_version, absences.front().until);
  absences.erase(absences.begin());
}

std::string_view to_string(NodeState state) { return name_of(state).name; }

char to_letter(NodeState state) { return name_of(state).letter; }

Result<NodeState> node_state_from_letter(std::string_view letter) {
  for (const StateName& name : kStateNames) {
    if (letter.size() == 1 && letter[0] == name.letter) return name.state;
  }
  return bad_value("s", letter, "one of u i d r m s");
}

bool is_above(NodeState a, NodeState b) { return name_of(a).rank > name_of(b).rank; }

Status set_node_state_key(NodeStateInfo& info, NodeType type, std::string_view key, std::string_view value) {
  if (key == "s") {
    FJORD_TRY_ASSIGN(info.state, node_state_from_letter(value));
  } else if (key == "c") {
    const auto capacity = cluster_text::parse_amount(value);
    if (!capacity) return bad_value(key, value, "a number that is not negative");
    if (type == NodeType::Storage) info.capacity = *capacity;
  } else if (key == "i") {
    const auto progress = cluster_text::parse_amount(value);
    if (!progress || *progress > 1.0) return bad_value(key, value, "a number from 0 to 1");
    info.init_progress = *progress;
  } else if (key == "t" || key == "v" || key == "a" || key == "l") {
    const auto number = cluster_text::parse_number<std::uint64_t>(value);
    if (!number) return bad_value(key, value, "a whole number");
    if (key == "t") info.start_time = *number;
    if (key == "v") info.up_since_version = *number;
    if (key == "a") info.available_since_version = *number;
    if (key == "l") info.lost_version = *number;
  } else if (key == "h") {
    if (type == NodeType::Storage) {
      info.past = parse_past(value);
      if (!info.past) return bad_value(key, value, "a version and the node's absences, as 3,10-12,15");
    }
  } else if (key == "b") {
    const auto bits = cluster_text::parse_number<unsigned>(value);
    if (!bits || *bits > 58) return bad_value(key, value, "a number of bits up to 58");
    info.min_used_bits = *bits;
  } else if (key == "m") {
    FJORD_TRY_ASSIGN(info.description, cluster_text::unescape(value));
  }
  return Status::ok();
}

void normalize_node_state(NodeStateInfo& info, NodeType type) {
  if (info.state != NodeState::Initializing) info.init_progress = 0.0;
  if (info.available_since_version >= info.up_since_version) info.available_since_version = 0;
  if (type == NodeType::Distributor) {
    info.capacity = 1.0;
    info.lost_version = 0;
    info.past.reset();
  }
}

void append_node_state(std::string& out, const NodeStateInfo& info, std::string_view prefix, NodeStateKeys keys) {
  const auto add = [&](char key, const auto& value) {
    fmt::format_to(std::back_inserter(out), "{}{}{}:{}", out.empty() ? "" : " ", prefix, key, value);
  };
  if (keys == NodeStateKeys::Report || info.state != NodeState::Up) add('s', to_letter(info.state));
  if (info.capacity != 1.0) add('c', info.capacity);
  if (info.state == NodeState::Initializing) add('i', info.init_progress);
  if (info.start_time != 0) add('t', info.start_time);
  if (info.up_since_version != 0) add('v', info.up_since_version);
  if (info.past) add('h', print_past(*info.past));
  if (info.available_since_version != 0) add('a', info.available_since_version);
  if (info.lost_version != 0) add('l', info.lost_version);
  if (keys == NodeStateKeys::Report && info.min_used_bits != kDefaultDistributionBits) add('b', info.min_used_bits);
  if (keys != NodeStateKeys::Cluster && !info.description.empty()) add('m', cluster_text::escape(info.description));
}

Result<NodeStateInfo> NodeStateInfo::parse(std::string_view text, NodeType type) {
  NodeStateInfo info;
  while (const auto token = cluster_text::next_token(text)) {
    const std::size_t colon = token->find(':');
    if (colon == std::string_view::npos) {
      return Status(StatusCode::InvalidArgument, fmt::format("'{}' in a node state has no ':'", *token));
    }
    FJORD_TRY(set_node_state_key(info, type, token->substr(0, colon), token->substr(colon + 1)));
  }
  normalize_node_state(info, type);
  return info;
}

std::string NodeStateInfo::to_string() const {
  std::string out;
  append_node_state(out, *this, "", NodeStateKeys::Report);
  return out;
}

bool NodeStateInfo::is_similar(const NodeStateInfo& other) const {
  const bool listing = init_progress < kListingProgressLimit;
  const bool other_listing = other.init_progress < kListingProgressLimit;
  return is_similar_ignoring_progress(other) && (state != NodeState::Initializing || listing == other_listing);
}

bool NodeStateInfo::is_similar_ignoring_progress(const NodeStateInfo& other) const {
  return state == other.state && capacity == other.capacity && up_since_version == other.up_since_version &&
         lost_version == other.lost_version;
}

}  // namespace fjord
