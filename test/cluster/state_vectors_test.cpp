#include <catch2/catch.hpp>
#include <cctype>

#include "fjord/cluster/cluster_state.h"
#include "support/project_files.h"
#include "support/tsv.h"

namespace fjord {
namespace {

using test::TsvRow;

/// Returns the reason to skip a row; empty if the row is tested. cluster/README.md has the same list.
std::string reason_to_skip(const std::string& input) {
  if (input.find(".r:8") != std::string::npos || input.find("\nr:5") != std::string::npos) return "reliability";
  for (const char* disk : {"storage:10 .1.d:4", "d.badkey", "d:4 d.1.s:d"}) {
    if (input.find(disk) != std::string::npos) return "disks";
  }
  return {};
}

struct Counts {
  int passed = 0;
  std::map<std::string, int> skipped;
};

ClusterState parse_state(const std::string& text) {
  INFO(text);
  Result<ClusterState> state = ClusterState::parse(text);
  INFO(state.status());
  REQUIRE(state);
  return *state;
}

NodeState state_named(const std::string& name) {
  for (const NodeState state : {NodeState::Up, NodeState::Initializing, NodeState::Down, NodeState::Retired,
                                NodeState::Maintenance, NodeState::Stopping}) {
    if (to_string(state) == name) return state;
  }
  FAIL("no state " << name);
  return NodeState::Up;
}

/// Parses a text such as "node: initializing, progress half of the listing limit".
NodeStateInfo described_node(const std::string& text) {
  NodeStateInfo node;
  node.state = NodeState::Initializing;
  const std::map<std::string, double> progress = {{"0", 0.0},
                                                  {"half of the listing limit", kListingProgressLimit / 2},
                                                  {"at the listing limit", kListingProgressLimit},
                                                  {"twice the listing limit", kListingProgressLimit * 2}};
  const std::string_view start = "node: initializing, progress ";
  REQUIRE(text.starts_with(start));
  node.init_progress = progress.at(text.substr(start.size()));
  return node;
}

void check_relation(const std::string& expected, bool actual) {
  if (!expected.empty()) CHECK(actual == (expected == "yes"));
}

std::string answer(const ClusterState& state, const std::string& question) {
  if (question == "version") return std::to_string(state.version());
  if (question == "cluster") return std::string(to_string(state.cluster()));
  if (question == "distributor count") return std::to_string(state.node_count(NodeType::Distributor));
  if (question == "storage count") return std::to_string(state.node_count(NodeType::Storage));
  const std::vector<std::string> words = test::split(question, ' ');
  REQUIRE(words.size() >= 3);
  const auto id = NodeId::parse(words[0] + "." + words[1]);
  REQUIRE(id);
  const NodeStateInfo& node = state.node(*id);
  const auto number = [](double value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  if (words[2] == "state") return std::string(to_string(node.state));
  if (words[2] == "capacity") return number(node.capacity);
  if (words[2] == "init") return number(node.init_progress);
  if (words[2] == "description") return node.description;
  FAIL("unknown question " << question);
  return {};
}

}  // namespace

TEST_CASE("cluster state vectors: what is valid and its canonical form", "[cluster][vectors]") {
  const auto path = test::vector_file("state/cluster_state.tsv");
  Counts counts;
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& input = row.at("input");
    if (const std::string reason = reason_to_skip(input); !reason.empty()) {
      ++counts.skipped[reason];
      continue;
    }
    INFO(row.at("suite") << ": " << input);
    const Result<ClusterState> state = ClusterState::parse(input);
    INFO(state.status());
    REQUIRE(state.has_value() == (row.at("valid") == "yes"));
    ++counts.passed;
    if (!state || (row.at("canonical").empty() && !row.at("note").empty())) continue;
    CHECK(state->to_string() == row.at("canonical"));
    CHECK(parse_state(state->to_string()).to_string() == row.at("canonical"));
  }
  CHECK(counts.passed == 49);
  CHECK(counts.skipped == std::map<std::string, int>{{"reliability", 1}, {"disks", 2}});
}

TEST_CASE("cluster state vectors: any white space separates tokens", "[cluster]") {
  const ClusterState state = parse_state("distributor:2\n  .1.t:3\nstorage:2\n\t.0.s:i   \r\f.1.s:m");
  CHECK(state.node_count(NodeType::Distributor) == 2);
  CHECK(state.node(NodeId::distributor(1)).start_time == 3);
  CHECK(state.node(NodeId::storage(0)).state == NodeState::Initializing);
  CHECK(state.node(NodeId::storage(1)).state == NodeState::Maintenance);
}

TEST_CASE("cluster state vectors: what one parsed state answers", "[cluster][vectors]") {
  const auto path = test::vector_file("state/detail.tsv");
  int passed = 0;
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("question"));
    CHECK(answer(parse_state(row.at("state")), row.at("question")) == row.at("answer"));
    ++passed;
  }
  CHECK(passed == 52);
}

TEST_CASE("cluster state vectors: node state strings", "[cluster][vectors]") {
  const auto path = test::vector_file("state/node_state.tsv");
  Counts counts;
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& input = row.at("input");
    if (const std::string reason = reason_to_skip(input); !reason.empty()) {
      ++counts.skipped[reason];
      continue;
    }
    INFO(row.at("suite") << ": " << input);
    const NodeType type = row.at("node_type") == "storage" ? NodeType::Storage : NodeType::Distributor;
    const Result<NodeStateInfo> node = NodeStateInfo::parse(input, type);
    INFO(node.status());
    REQUIRE(node.has_value() == (row.at("valid") == "yes"));
    ++counts.passed;
    if (!node) continue;
    CHECK(node->to_string() == row.at("canonical"));
    const Result<NodeStateInfo> again = NodeStateInfo::parse(row.at("canonical"), type);
    REQUIRE(again);
    CHECK(*again == *node);
  }
  CHECK(counts.passed == 19);
  CHECK(counts.skipped == std::map<std::string, int>{{"reliability", 1}, {"disks", 3}});
}

TEST_CASE("cluster state vectors: node names", "[cluster][vectors]") {
  const auto path = test::vector_file("state/node_name.tsv");
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("input"));
    const Result<NodeId> node = NodeId::parse(row.at("input"));
    REQUIRE(node.has_value() == (row.at("valid") == "yes"));
    if (node) CHECK(node->to_string() == row.at("input"));
  }
}

TEST_CASE("cluster state vectors: the order of states", "[cluster][vectors]") {
  const auto path = test::vector_file("state/state_rank.tsv");
  int passed = 0;
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& relation = row.at("relation");
    INFO(relation << " " << row.at("a") << " " << row.at("b"));
    if (relation == "legal_in_cluster_state") {
      // Such a row needs the state "unknown" or a capacity of distributors; Fjord has neither.
      continue;
    }
    const NodeState a = state_named(row.at("a"));
    const NodeState b = state_named(row.at("b"));
    CHECK((relation == "above" ? is_above(a, b) : wanted_may_override(a, b)) == (row.at("holds") == "yes"));
    ++passed;
  }
  CHECK(passed == 24);
}

TEST_CASE("cluster state vectors: equal and similar states", "[cluster][vectors]") {
  const auto path = test::vector_file("state/compare.tsv");
  int cluster_down = 0;
  for (const TsvRow& row : test::read_tsv(path)) {
    INFO(row.at("a") << " | " << row.at("b"));
    if (row.at("a").starts_with("node:")) {
      const NodeStateInfo a = described_node(row.at("a"));
      const NodeStateInfo b = described_node(row.at("b"));
      check_relation(row.at("equal"), a == b);
      check_relation(row.at("similar"), a.is_similar(b) && b.is_similar(a));
      check_relation(row.at("similar_ignoring_progress"), a.is_similar_ignoring_progress(b));
      continue;
    }
    const std::string with_bits = " with storage 1 reporting minimum used bits 15";
    std::string text = row.at("b");
    const std::size_t extra = text.find(with_bits);
    const ClusterState a = parse_state(row.at("a"));
    ClusterState b = parse_state(text.substr(0, extra));
    if (extra != std::string::npos) {
      NodeStateInfo node = b.node(NodeId::storage(1));
      node.min_used_bits = 15;
      b.set_node(NodeId::storage(1), node);
    }
    check_relation(row.at("equal"), a == b);
    if (!a.is_cluster_up() && !b.is_cluster_up()) {
      ++cluster_down;  // The other system calls any two states similar while both clusters are down;
                       // cluster/README.md says why Fjord compares such states like all others.
      CHECK(a.is_similar(b) == (a.to_string() == b.to_string()));
      continue;
    }
    check_relation(row.at("similar"), a.is_similar(b) && b.is_similar(a));
    check_relation(row.at("similar_ignoring_progress"), a.is_similar_ignoring_progress(b));
  }
  CHECK(cluster_down == 1);
}

TEST_CASE("cluster state vectors: readable differences", "[cluster][vectors]") {
  const auto path = test::vector_file("state/diff.tsv");
  int passed = 0;
  for (const TsvRow& row : test::read_tsv(path)) {
    // The difference is printed for whole states only, not for a single node.
    if (row.at("a").starts_with("node:")) continue;
    std::string text = row.at("a");
    const std::size_t extra = text.find(" (description of storage 2: Booting)");
    ClusterState a = parse_state(text.substr(0, extra));
    if (extra != std::string::npos) {
      NodeStateInfo node = a.node(NodeId::storage(2));
      node.description = "Booting";
      a.set_node(NodeId::storage(2), node);
    }
    const auto lower = [](std::string s) {
      for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return s;
    };
    CHECK(lower(a.diff(parse_state(row.at("b")))) == lower(row.at("difference")));
    ++passed;
  }
  CHECK(passed == 3);
}

namespace {

void set_states(ClusterState& state, NodeType type, std::initializer_list<std::uint16_t> nodes, NodeState to) {
  for (const std::uint16_t node : nodes) state.set_node_state({type, node}, to);
}

/// Carries out the operation that the text `operation` describes.
void apply_edit(ClusterState& state, const std::string& operation, std::string& printed) {
  const std::string_view start = "start from ";
  printed.clear();
  if (operation == "start from the empty state") {
    state = ClusterState();
  } else if (operation.starts_with(start)) {
    state = parse_state(operation.substr(start.size()));
  } else if (operation == "cluster = down, version = 5, bits = 12") {
    state.set_cluster(NodeState::Down);
    state.set_version(5);
    state.set_bits(12);
  } else if (operation == "distributors 0 1 up, storage 0 1 2 up") {
    state = ClusterState();
    set_states(state, NodeType::Distributor, {0, 1}, NodeState::Up);
    set_states(state, NodeType::Storage, {0, 1, 2}, NodeState::Up);
  } else if (operation.starts_with("storage 2 and distributor 1 = down with description")) {
    NodeStateInfo down;
    down.state = NodeState::Down;
    down.description = "Took it down";
    state.set_node(NodeId::storage(2), down);
    state.set_node(NodeId::distributor(1), down);
    printed = state.to_string(ClusterState::Print::WithDescriptions);
  } else if (operation != "same, normal print") {
    const std::vector<std::string> words = test::split(operation, ' ');  // The words are "<type> <index> = <state>".
    REQUIRE(words.size() == 4);
    const auto id = NodeId::parse(words[0] + "." + words[1]);
    REQUIRE(id);
    state.set_node_state(*id, state_named(words[3]));
  }
  if (printed.empty()) printed = state.to_string();
}

}  // namespace

TEST_CASE("cluster state vectors: sequences of changes", "[cluster][vectors]") {
  const auto path = test::vector_file("state/edits.tsv");
  ClusterState state;
  std::string printed;
  for (const TsvRow& row : test::read_tsv(path)) {
    const std::string& operation = row.at("operation");
    INFO(row.at("sequence") << " " << operation);
    apply_edit(state, operation, printed);
    if (row.at("sequence") == "version_and_bits") {
      // The row shows progress 1.0 for a node that has no progress; Fjord prints 0, as the C++ suites do.
      if (row.at("step") == "0") continue;
      CHECK(printed == "version:5 cluster:d bits:12 distributor:2 .1.s:i .1.i:0 storage:2 .0.s:i .0.i:0.345");
      continue;
    }
    CHECK(printed == row.at("result"));
  }
}

}  // namespace fjord
