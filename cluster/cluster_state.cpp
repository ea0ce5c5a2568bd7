#include "fjord/cluster/cluster_state.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/cluster/feature.h"
#include "node_state_keys.h"
#include "text.h"

namespace fjord {
namespace {

constexpr unsigned kMaxDistributionBits = 58;
constexpr std::array<NodeType, 2> kPrintOrder = {NodeType::Distributor, NodeType::Storage};

bool is_legal_cluster_state(NodeState state) { return state != NodeState::Retired && state != NodeState::Maintenance; }

Status bad_token(std::string_view token, std::string_view why) {
  return {StatusCode::InvalidArgument, fmt::format("cluster state: '{}': {}", token, why)};
}

/// Returns true if the node is down, has the default capacity and no known past or loss, so that the state can leave it
/// out. Another capacity is kept in the state, because the weights of groups include nodes that are down.
bool is_plainly_down(const NodeStateInfo& node) {
  return node.state == NodeState::Down && node.capacity == 1.0 && !node.past && node.lost_version == 0;
}

std::string print_exception(const PlacementException& one) {
  return fmt::format("{:x}={}>{}", one.bucket, one.from, one.to);
}

std::string print_exceptions(std::span<const PlacementException> exceptions) {
  std::string out;
  for (const PlacementException& one : exceptions) {
    if (!out.empty()) out += ',';
    out += print_exception(one);
  }
  return out;
}

/// Prints read shares, with the rows of each bucket joined: "1f=4*200+7*800".
std::string print_read_shares(std::span<const ReadShare> shares) {
  std::string out;
  const ReadShare* before = nullptr;
  for (const ReadShare& one : shares) {
    if (before != nullptr && before->bucket == one.bucket) {
      out += '+';
    } else {
      fmt::format_to(std::back_inserter(out), "{}{:x}=", out.empty() ? "" : ",", one.bucket);
    }
    fmt::format_to(std::back_inserter(out), "{}*{}", one.node, one.permille);
    before = &one;
  }
  return out;
}

/// Returns the rows of `bucket` in a list that is ordered by bucket.
template <typename Row>
std::span<const Row> rows_of(const std::vector<Row>& rows, std::uint64_t bucket) {
  if (rows.empty()) return {};
  const auto begin =
      std::partition_point(rows.begin(), rows.end(), [&](const Row& one) { return one.bucket < bucket; });
  auto end = begin;
  while (end != rows.end() && end->bucket == bucket) ++end;
  return {begin, end};
}

void trim(std::vector<NodeStateInfo>& nodes) {
  while (!nodes.empty() && is_plainly_down(nodes.back()) && nodes.back().description.empty()) nodes.pop_back();
}

/// Reads tokens into lists of nodes. A token about a node belongs to the node type whose count (`storage:6`) came last
/// before it.
struct Parser {
  std::uint64_t version = 0;
  std::uint64_t skipped = 0;
  std::uint64_t time_floor_us = 0;
  unsigned replicas_assured = 0;
  NodeState cluster = NodeState::Up;
  unsigned bits = kDefaultDistributionBits;
  std::string description;
  std::vector<NodeStateInfo> distributors;
  std::vector<NodeStateInfo> storage;
  std::vector<NodeStateInfo>* current = nullptr;
  NodeType current_type = NodeType::Storage;
  std::vector<PlacementException> exceptions;
  std::vector<ReadShare> read_shares;
  std::vector<std::string> features;

  Status read(std::string_view token) {
    const std::size_t colon = token.find(':');
    if (colon == std::string_view::npos) return bad_token(token, "expected <key>:<value>");
    const std::string_view key = token.substr(0, colon);
    const std::string_view value = token.substr(colon + 1);
    if (key.starts_with('.')) return read_node_key(token, key.substr(1), value);
    if (key == "version") {
      const auto number = cluster_text::parse_number<std::uint64_t>(value);
      if (!number) return bad_token(token, "expected a version number");
      version = *number;
    } else if (key == "skipped") {
      const auto number = cluster_text::parse_number<std::uint64_t>(value);
      if (!number) return bad_token(token, "expected a number of versions");
      skipped = *number;
    } else if (key == "floor") {
      const auto number = cluster_text::parse_number<std::uint64_t>(value);
      if (!number) return bad_token(token, "expected microseconds since 1970");
      time_floor_us = *number;
    } else if (key == "copies") {
      const auto number = cluster_text::parse_number<std::uint16_t>(value);
      if (!number) return bad_token(token, "expected a number of replicas");
      replicas_assured = *number;
    } else if (key == "cluster") {
      const Result<NodeState> state = node_state_from_letter(value);
      if (!state) return state.error().with_context("cluster state");
      if (!is_legal_cluster_state(*state))
        return bad_token(token, "a cluster is only up, down, initializing or stopping");
      cluster = *state;
    } else if (key == "bits") {
      const auto number = cluster_text::parse_number<unsigned>(value);
      if (!number || *number < 1 || *number > kMaxDistributionBits) return bad_token(token, "expected 1 to 58 bits");
      bits = *number;
    } else if (key == "distributor" || key == "storage") {
      return read_count(token, key == "storage" ? NodeType::Storage : NodeType::Distributor, value);
    } else if (key == "except") {
      return read_exceptions(token, value);
    } else if (key == "read") {
      return read_read_shares(token, value);
    } else if (key == "features") {
      read_features(value);
    } else if (key == "m") {
      FJORD_TRY_ASSIGN(description, cluster_text::unescape(value));
    }
    return Status::ok();  // Keys that this version does not know are ignored; later versions may write them.
  }

  Status read_count(std::string_view token, NodeType type, std::string_view value) {
    const auto count = cluster_text::parse_number<std::uint16_t>(value);
    if (!count) return bad_token(token, "expected a number of nodes up to 65535");
    current_type = type;
    current = type == NodeType::Storage ? &storage : &distributors;
    current->assign(*count, NodeStateInfo{});
    return Status::ok();
  }

  /// Reads the names of features, separated by commas.
  void read_features(std::string_view value) {
    features.clear();
    while (!value.empty()) {
      const std::size_t end = std::min(value.find(','), value.size());
      features.emplace_back(value.substr(0, end));
      value.remove_prefix(std::min(end + 1, value.size()));
    }
  }

  /// Reads the placement exceptions: `<bucket>=<from>><to>`, separated by commas. The bucket is hexadecimal, the nodes
  /// are decimal.
  Status read_exceptions(std::string_view token, std::string_view value) {
    exceptions.clear();
    while (!value.empty()) {
      const std::size_t end = std::min(value.find(','), value.size());
      const std::string_view one = value.substr(0, end);
      value.remove_prefix(std::min(end + 1, value.size()));
      const std::size_t equal = std::min(one.find('='), one.size());
      const std::size_t arrow = std::min(one.find('>', equal), one.size());
      const auto bucket = cluster_text::parse_hex(one.substr(0, equal));
      const auto from = cluster_text::parse_number<std::uint16_t>(
          one.substr(std::min(equal + 1, arrow), arrow - std::min(equal + 1, arrow)));
      const auto to = cluster_text::parse_number<std::uint16_t>(one.substr(std::min(arrow + 1, one.size())));
      if (!bucket || !from || !to || *from == *to) {
        return bad_token(token, fmt::format("'{}' is not <bucket>=<from>><to>", one));
      }
      exceptions.push_back({*bucket, *from, *to});
    }
    return Status::ok();
  }

  /// Reads the read shares: `<bucket>=<node>*<permille>+...`, separated by commas.
  Status read_read_shares(std::string_view token, std::string_view value) {
    read_shares.clear();
    while (!value.empty()) {
      const std::size_t end = std::min(value.find(','), value.size());
      const std::string_view one = value.substr(0, end);
      value.remove_prefix(std::min(end + 1, value.size()));
      const std::size_t equal = std::min(one.find('='), one.size());
      const auto bucket = cluster_text::parse_hex(one.substr(0, equal));
      std::string_view parts = one.substr(std::min(equal + 1, one.size()));
      do {
        const std::size_t plus = std::min(parts.find('+'), parts.size());
        const std::string_view part = parts.substr(0, plus);
        const std::size_t star = std::min(part.find('*'), part.size());
        const auto node = cluster_text::parse_number<std::uint16_t>(part.substr(0, star));
        const auto permille = cluster_text::parse_number<std::uint16_t>(part.substr(std::min(star + 1, part.size())));
        if (!bucket || !node || !permille || *permille > 1000) {
          return bad_token(token, fmt::format("'{}' is not <bucket>=<node>*<0 to 1000>+...", one));
        }
        read_shares.push_back({*bucket, *node, *permille});
        parts.remove_prefix(std::min(plus + 1, parts.size()));
      } while (!parts.empty());
    }
    return Status::ok();
  }

  Status check_read_shares() {
    std::sort(read_shares.begin(), read_shares.end());
    for (std::size_t i = 0; i < read_shares.size(); ++i) {
      const ReadShare& one = read_shares[i];
      const bool is_double = i > 0 && read_shares[i - 1].bucket == one.bucket && read_shares[i - 1].node == one.node;
      if (is_double || one.bucket >> bits != 0) {
        return bad_token(fmt::format("read:{}", print_read_shares({&one, 1})),
                         is_double ? "occurs twice" : "there is no such bucket");
      }
    }
    return Status::ok();
  }

  Status check_exceptions() {
    std::sort(exceptions.begin(), exceptions.end());
    for (std::size_t i = 0; i < exceptions.size(); ++i) {
      const PlacementException& one = exceptions[i];
      const bool is_double = i > 0 && exceptions[i - 1].bucket == one.bucket && exceptions[i - 1].from == one.from;
      if (is_double || one.bucket >> bits != 0) {
        return bad_token(fmt::format("except:{}", print_exception(one)),
                         is_double ? "occurs twice" : "there is no such bucket");
      }
    }
    return Status::ok();
  }

  Status read_node_key(std::string_view token, std::string_view key, std::string_view value) {
    const std::size_t dot = std::min(key.find('.'), key.size());
    const auto index = cluster_text::parse_number<std::uint16_t>(key.substr(0, dot));
    if (!index) return bad_token(token, "expected .<node index>.<key>:<value>");
    if (current == nullptr) return bad_token(token, "comes before the number of nodes");
    if (*index >= current->size()) {
      return bad_token(token,
                       fmt::format("there is no {} node {} of {}", to_string(current_type), *index, current->size()));
    }
    const std::string_view node_key = dot < key.size() ? key.substr(dot + 1) : std::string_view{};
    const Status status = set_node_state_key((*current)[*index], current_type, node_key, value);
    return status.is_ok()
               ? status
               : status.with_context(fmt::format("cluster state: {} node {}", to_string(current_type), *index));
  }

  void finish(std::vector<NodeStateInfo>& nodes, NodeType type) {
    for (NodeStateInfo& node : nodes) {
      normalize_node_state(node, type);
      node.min_used_bits = kDefaultDistributionBits;
    }
    trim(nodes);
  }
};

template <typename T>
void add_difference(std::string& out, std::string_view name, const T& before, const T& after) {
  if (before == after) return;
  fmt::format_to(std::back_inserter(out), "{}{}: {} => {}", out.empty() ? "" : ", ", name, before, after);
}

/// Returns the text of the differences between two states of a node, without its index. Several differences stand in
/// brackets.
std::string node_difference(const NodeStateInfo& before, const NodeStateInfo& after) {
  std::string out;
  int count = 0;
  const auto add = [&](std::string_view name, const auto& a, const auto& b) {
    if (a == b) return;
    ++count;
    add_difference(out, name, a, b);
  };
  if (before.state != after.state) {
    out = fmt::format("{} => {}", to_string(before.state), to_string(after.state));
    ++count;
  }
  add("capacity", before.capacity, after.capacity);
  // Progress is compared only in the same state, because each state of a node has a progress of its own.
  if (before.state == after.state) add("progress", before.init_progress, after.init_progress);
  add("start time", before.start_time, after.start_time);
  add("up since version", before.up_since_version, after.up_since_version);
  add("lost its data in version", before.lost_version, after.lost_version);
  add("description", before.description, after.description);
  return count > 1 ? "[" + out + "]" : out;
}

}  // namespace

const NodeStateInfo& ClusterState::down_node() {
  static const NodeStateInfo kDown = [] {
    NodeStateInfo info;
    info.state = NodeState::Down;
    return info;
  }();
  return kDown;
}

Result<ClusterState> ClusterState::parse(std::string_view text) {
  Parser parser;
  while (const auto token = cluster_text::next_token(text)) FJORD_TRY(parser.read(*token));
  parser.finish(parser.distributors, NodeType::Distributor);
  parser.finish(parser.storage, NodeType::Storage);
  FJORD_TRY(parser.check_exceptions());
  FJORD_TRY(parser.check_read_shares());
  if (parser.skipped != 0 && parser.skipped >= parser.version) {
    return bad_token(fmt::format("skipped:{}", parser.skipped),
                     "expected fewer than there are versions before this one");
  }

  ClusterState state;
  state.version_ = parser.version;
  state.skipped_ = parser.skipped;
  state.time_floor_us_ = parser.time_floor_us;
  state.replicas_assured_ = parser.replicas_assured;
  state.cluster_ = parser.cluster;
  state.bits_ = parser.bits;
  state.description_ = std::move(parser.description);
  state.distributors_ = std::move(parser.distributors);
  state.storage_ = std::move(parser.storage);
  state.exceptions_ = std::move(parser.exceptions);
  state.read_shares_ = std::move(parser.read_shares);
  state.set_features(std::move(parser.features));
  return state;
}

std::string ClusterState::to_string(Print print) const {
  std::string out;
  const auto add = [&](std::string_view key, const auto& value) {
    fmt::format_to(std::back_inserter(out), "{}{}:{}", out.empty() ? "" : " ", key, value);
  };
  const bool verbose = print == Print::WithDescriptions;
  if (version_ != 0) add("version", version_);
  if (skipped_ != 0) add("skipped", skipped_);
  if (cluster_ != NodeState::Up) add("cluster", to_letter(cluster_));
  if (bits_ != kDefaultDistributionBits) add("bits", bits_);
  if (time_floor_us_ != 0) add("floor", time_floor_us_);
  if (replicas_assured_ != 0) add("copies", replicas_assured_);
  if (!features_.empty()) add("features", fmt::format("{}", fmt::join(features_, ",")));
  if (!exceptions_.empty()) add("except", print_exceptions(exceptions_));
  if (!read_shares_.empty()) add("read", print_read_shares(read_shares_));
  if (print != Print::Normal && !description_.empty()) add("m", cluster_text::escape(description_));
  for (const NodeType type : kPrintOrder) {
    const std::vector<NodeStateInfo>& list = nodes(type);
    std::size_t count = list.size();
    while (!verbose && count > 0 && is_plainly_down(list[count - 1])) --count;
    if (count == 0) continue;
    add(fjord::to_string(type), count);
    for (std::size_t index = 0; index < count; ++index) {
      append_node_state(out, list[index], fmt::format(".{}.", index),
                        verbose ? NodeStateKeys::ClusterWithDescription : NodeStateKeys::Cluster);
    }
  }
  return out;
}

void ClusterState::set_features(std::vector<std::string> names) { features_ = normalize_features(std::move(names)); }

void ClusterState::set_cluster(NodeState state) {
  FJORD_CHECK(is_legal_cluster_state(state));
  cluster_ = state;
}

void ClusterState::set_bits(unsigned bits) {
  FJORD_CHECK(bits >= 1 && bits <= kMaxDistributionBits);
  if (bits != bits_) {
    exceptions_.clear();
    read_shares_.clear();
  }
  bits_ = bits;
}

void ClusterState::set_exceptions(std::vector<PlacementException> exceptions) {
  std::sort(exceptions.begin(), exceptions.end());
  for (std::size_t i = 0; i < exceptions.size(); ++i) {
    FJORD_CHECK(exceptions[i].bucket >> bits_ == 0);
    FJORD_CHECK(exceptions[i].from != exceptions[i].to);
    FJORD_CHECK(i == 0 || exceptions[i - 1].bucket != exceptions[i].bucket ||
                exceptions[i - 1].from != exceptions[i].from);
  }
  exceptions_ = std::move(exceptions);
}

std::span<const PlacementException> ClusterState::exceptions_of(std::uint64_t bucket) const {
  return rows_of(exceptions_, bucket);
}

void ClusterState::set_read_shares(std::vector<ReadShare> shares) {
  std::sort(shares.begin(), shares.end());
  for (std::size_t i = 0; i < shares.size(); ++i) {
    FJORD_CHECK(shares[i].bucket >> bits_ == 0);
    FJORD_CHECK(shares[i].permille <= 1000);
    FJORD_CHECK(i == 0 || shares[i - 1].bucket != shares[i].bucket || shares[i - 1].node != shares[i].node);
  }
  read_shares_ = std::move(shares);
}

std::span<const ReadShare> ClusterState::read_shares_of(std::uint64_t bucket) const {
  return rows_of(read_shares_, bucket);
}

void ClusterState::set_node(NodeId id, NodeStateInfo info) {
  FJORD_CHECK(id.index < kMaxNodeCount);
  std::vector<NodeStateInfo>& list = nodes(id.type);
  normalize_node_state(info, id.type);
  info.min_used_bits = kDefaultDistributionBits;
  if (id.index >= list.size()) list.resize(id.index + std::size_t{1}, down_node());
  list[id.index] = std::move(info);
  trim(list);
}

void ClusterState::set_node_state(NodeId id, NodeState state) {
  NodeStateInfo info = node(id);
  info.state = state;
  set_node(id, std::move(info));
}

namespace {

template <typename Similar>
bool are_nodes_similar(const ClusterState& a, const ClusterState& b, Similar similar) {
  for (const NodeType type : kPrintOrder) {
    const std::uint16_t count = std::max(a.node_count(type), b.node_count(type));
    for (std::uint16_t index = 0; index < count; ++index) {
      if (!similar(a.node({type, index}), b.node({type, index}))) return false;
    }
  }
  return true;
}

}  // namespace

bool ClusterState::is_similar(const ClusterState& other) const {
  return cluster_ == other.cluster_ && bits_ == other.bits_ && exceptions_ == other.exceptions_ &&
         read_shares_ == other.read_shares_ && replicas_assured_ == other.replicas_assured_ &&
         features_ == other.features_ &&
         are_nodes_similar(*this, other, [](const auto& a, const auto& b) { return a.is_similar(b); });
}

bool ClusterState::is_similar_ignoring_progress(const ClusterState& other) const {
  return cluster_ == other.cluster_ && bits_ == other.bits_ && exceptions_ == other.exceptions_ &&
         read_shares_ == other.read_shares_ && replicas_assured_ == other.replicas_assured_ &&
         features_ == other.features_ && are_nodes_similar(*this, other, [](const auto& a, const auto& b) {
           return a.is_similar_ignoring_progress(b);
         });
}

std::string ClusterState::diff(const ClusterState& next) const {
  std::string out;
  add_difference(out, "version", version_, next.version_);
  add_difference(out, "cluster", fjord::to_string(cluster_), fjord::to_string(next.cluster_));
  add_difference(out, "bits", bits_, next.bits_);
  add_difference(out, "assured replicas", replicas_assured_, next.replicas_assured_);
  add_difference(out, "features", fmt::format("{}", fmt::join(features_, " ")),
                 fmt::format("{}", fmt::join(next.features_, " ")));
  add_difference(out, "exceptions", print_exceptions(exceptions_), print_exceptions(next.exceptions_));
  add_difference(out, "read shares", print_read_shares(read_shares_), print_read_shares(next.read_shares_));
  add_difference(out, "description", description_, next.description_);
  for (const NodeType type : {NodeType::Storage, NodeType::Distributor}) {
    std::string changed;
    const std::uint16_t count = std::max(node_count(type), next.node_count(type));
    for (std::uint16_t index = 0; index < count; ++index) {
      const std::string change = node_difference(node({type, index}), next.node({type, index}));
      if (change.empty()) continue;
      fmt::format_to(std::back_inserter(changed), "{}{}: {}", changed.empty() ? "" : ", ", index, change);
    }
    if (changed.empty()) continue;
    fmt::format_to(std::back_inserter(out), "{}{}: [{}]", out.empty() ? "" : ", ", fjord::to_string(type), changed);
  }
  return out;
}

}  // namespace fjord
