// The guard rails of balancing by load (I22), and the table of overrides with its steps (I20).

#include "balance_rules.h"

#include <catch2/catch.hpp>

#include "balance_knowledge.h"
#include "balance_steps.h"

namespace fjord::fleetcontroller {
namespace {

ClusterView view(unsigned bits, unsigned nodes, unsigned redundancy, std::vector<PlacementException> table = {},
                 const std::string& distribution = {}) {
  ClusterState state =
      ClusterState::parse("version:7 bits:" + std::to_string(bits) + " distributor:1 storage:" + std::to_string(nodes))
          .value();
  state.set_exceptions(std::move(table));
  return ClusterView::make(
      std::move(state), distribution.empty() ? DistributionConfig::flat(static_cast<std::uint16_t>(nodes), redundancy)
                                             : DistributionConfig::parse(distribution).value());
}

/// A model with one replica of each bucket on node (bucket mod 4), each of 100 bytes.
balancer::BalanceModel model(std::uint64_t round) {
  balancer::BalanceModel model;
  model.round = round;
  for (std::uint32_t i = 0; i < 4; ++i) model.nodes.push_back({.group = i});
  for (std::uint32_t i = 0; i < 16; ++i) {
    balancer::Slice slice;
    slice.range = {i, i + 1};
    slice.writes = i % 4 == 0 ? 30.0 : 10.0;
    slice.bytes = 100;
    slice.holders.push_back({static_cast<std::uint16_t>(i % 4), 1.0});
    model.slices.push_back(slice);
  }
  model.step_bytes_max = 250;
  return model;
}

BalanceStep step_of(std::uint64_t id, std::vector<BalancedReplica> moves) {
  BalanceStep step;
  step.id = id;
  step.moves = std::move(moves);
  return step;
}

ClusterFacts well() {
  ClusterFacts facts;
  facts.active = view(4, 3, 2);
  for (std::uint16_t i = 0; i < 3; ++i) {
    facts.nodes.push_back({.id = NodeId::storage(i), .state = NodeState::Up, .is_fresh = true, .state_version = 7});
  }
  facts.nodes.push_back(
      {.id = {NodeType::Distributor, 0}, .state = NodeState::Up, .is_fresh = true, .state_version = 7});
  return facts;
}

}  // namespace

TEST_CASE("balance rules: moving begins after two rounds at 1.10 or one at 1.30, and ends at 1.03") {
  BalanceTrigger at_once;
  at_once.note(1.3);
  CHECK(at_once.is_on());

  BalanceTrigger trigger;
  trigger.note(1.29);
  CHECK_FALSE(trigger.is_on());
  trigger.note(1.09);
  trigger.note(1.2);
  CHECK_FALSE(trigger.is_on());
  trigger.interrupt();
  trigger.note(1.2);
  CHECK_FALSE(trigger.is_on());
  trigger.note(1.1);
  CHECK(trigger.is_on());
  trigger.note(1.04);
  trigger.interrupt();
  CHECK(trigger.is_on());
  trigger.note(1.03);
  CHECK_FALSE(trigger.is_on());
}

TEST_CASE("balance rules: a step after which three rounds are 5 % worse is taken back once") {
  BalanceWatch watch;
  CHECK(watch.note(9) == 0);
  watch.begin(4, 1.2);
  CHECK(watch.note(1.3) == 0);
  CHECK(watch.is_worse());
  CHECK(watch.note(1.27) == 0);
  CHECK(watch.note(1.4) == 4);
  CHECK(watch.note(1.4) == 0);
  watch.begin(5, 1.2);
  CHECK(watch.note(1.3) == 0);
  CHECK(watch.note(1.25) == 0);
  CHECK_FALSE(watch.is_worse());
  for (int i = 0; i < 5; ++i) CHECK(watch.note(1.9) == 0);
}

TEST_CASE("balance rules: a bucket rests for six rounds, and does not go back for sixty") {
  BalanceMoves last;
  last.update({step_of(1, {{3, 3, 1, 100}})}, 10);
  const std::vector<BalancedReplica> on = {{3, 1, 2, 100}};
  const std::vector<BalancedReplica> back = {{3, 1, 3, 100}};
  for (const std::uint64_t round : {10, 15}) {
    CHECK(check_moves(on, model(round), last).moves.empty());
    CHECK(last.rests(3, round));
  }
  CHECK(check_moves(on, model(16), last).moves == on);
  CHECK(check_moves(back, model(16), last).moves.empty());
  last.update({step_of(1, {{3, 3, 1, 100}})}, 69);
  CHECK(check_moves(back, model(69), last).moves.empty());
  last.update({step_of(1, {{3, 3, 1, 100}})}, 70);
  CHECK(check_moves(back, model(70), last).moves == back);
  // The move back is allowed if the node that the replica leaves is gone.
  last.update({step_of(2, {{3, 3, 1, 100}})}, 71);
  balancer::BalanceModel gone = model(72);
  gone.nodes[1].usable = false;
  CHECK(check_moves(back, gone, last).moves == back);
}

TEST_CASE("balance rules: the bytes of a step count over all nodes, and a bucket moves once in it") {
  const std::vector<BalancedReplica> moves = {{0, 0, 1, 100}, {0, 1, 2, 100}, {4, 0, 2, 100}, {8, 0, 3, 100}};
  const CheckedMoves checked = check_moves(moves, model(5), {});
  CHECK(checked.moves == std::vector<BalancedReplica>{{0, 0, 1, 100}, {4, 0, 2, 100}});
  REQUIRE(checked.left_out.size() == 2);
  CHECK(checked.left_out[0].find("another replica of it moves") != std::string::npos);
  CHECK(checked.left_out[1].find("more bytes than it may") != std::string::npos);
}

TEST_CASE("balance rules: nothing is moved onto a node whose disk is nearly full or that is gone") {
  balancer::BalanceModel full = model(5);
  full.nodes[1].accepts = false;
  full.nodes[2].usable = false;
  const std::vector<BalancedReplica> moves = {{0, 0, 1, 10}, {4, 0, 2, 10}, {8, 0, 3, 10}, {99, 0, 3, 10}};
  CHECK(check_moves(moves, full, {}).moves == std::vector<BalancedReplica>{{8, 0, 3, 10}});
}

TEST_CASE("balance rules: nothing is moved while a node is away, data is missing, or the cluster changes") {
  CHECK(why_not_balance(well(), false).empty());
  CHECK(why_not_balance(well(), true).size() == 1);
  ClusterFacts facts = well();
  facts.is_changing = true;
  CHECK_FALSE(why_not_balance(facts, false).empty());
  facts = well();
  facts.nodes[1].state = NodeState::Maintenance;
  CHECK_FALSE(why_not_balance(facts, false).empty());
  // A retired node serves all that it holds, yet its buckets are moving already.
  facts = well();
  facts.nodes[1].state = NodeState::Retired;
  CHECK_FALSE(why_not_balance(facts, false).empty());
  facts = well();
  facts.nodes[3].buckets_out_of_sync = 1;
  CHECK_FALSE(why_not_balance(facts, false).empty());
  facts = well();
  facts.nodes[0].wanted.state = NodeState::Retired;
  CHECK_FALSE(why_not_balance(facts, false).empty());
  facts = well();
  facts.active = view(17, 3, 2);
  CHECK_FALSE(why_not_balance(facts, false).empty());
  // An operator has removed a node, and no cluster state shows it yet.
  facts = well();
  std::erase_if(facts.nodes, [](const NodeFacts& node) { return node.id == NodeId::storage(1); });
  CHECK(why_not_balance(facts, false) == std::vector<std::string>{"storage.1 is being removed"});
}

TEST_CASE("balance steps: rows put replicas exactly where the moves say, also when they move again") {
  const ClusterView before = view(4, 6, 2);
  std::vector<BalancedReplica> moves;
  for (std::uint64_t key = 0; key < 16; ++key) {
    const NodeList nodes = before.ideal_nodes(BucketId(4, key));
    for (std::uint16_t to = 0; to < 6; ++to) {
      if (nodes.contains(to)) continue;
      moves.push_back({key, nodes.front(), to, 1});
      break;
    }
  }
  TableChange change = with_moves(before, moves, 100);
  CHECK(change.left_out.empty());
  CHECK(change.moves == moves);
  ClusterView after = view(4, 6, 2, change.table.exceptions);
  for (const BalancedReplica& move : moves) {
    const NodeList nodes = after.ideal_nodes(BucketId(4, move.bucket));
    CHECK(nodes.contains(move.to));
    CHECK_FALSE(nodes.contains(move.from));
  }
  CHECK(moves_between(before, change.table, {}).size() == moves.size());
  // After all moves were made in reverse, the table has no rows.
  std::vector<BalancedReplica> back;
  for (const BalancedReplica& move : moves) back.push_back({move.bucket, move.to, move.from, 1});
  change = with_moves(after, back, 100);
  CHECK(change.left_out.empty());
  CHECK(change.table == OverrideTable{});
  // Left out: a move from a node without the replica, one to a node that has it, and moves that exceed the table.
  const std::vector<BalancedReplica> wrong = {back[0], {0, moves[0].to, moves[0].to, 1}};
  CHECK(with_moves(before, wrong, 100).left_out.size() == 2);
  CHECK(with_moves(before, moves, 3).table.rows() == 3);
}

TEST_CASE("balance steps: replicas do not come closer together than the algorithm has them") {
  const std::string racks = "redundancy:2 (root (a 0 1 2) (b 3 4 5))";
  const ClusterView before = view(4, 6, 2, {}, racks);
  const NodeList nodes = before.ideal_nodes(BucketId(4, 3));
  std::vector<BalancedReplica> moves;
  for (std::uint16_t to = 0; to < 6; ++to) {
    if (!nodes.contains(to)) moves.push_back({3, nodes.front(), to, 1});
  }
  for (const BalancedReplica& move : moves) {
    const bool is_same_rack = (move.from < 3) == (move.to < 3);
    CHECK(with_moves(before, std::span(&move, 1), 100).moves.size() == (is_same_rack ? 1 : 0));
  }
}

TEST_CASE("balance steps: a revert restores the exact table, and other distribution bits begin a new one") {
  ClusterRecord record;
  const OverrideTable first = {{{1, 0, 3}, {5, 2, 4}}, {{1, 0, 300}, {1, 2, 700}}};
  const OverrideTable second = {{{1, 0, 4}, {5, 2, 4}, {9, 1, 0}}, {{1, 0, 300}, {1, 2, 600}}};
  CHECK(change_table(record, {}, 4, {}) == 0);
  CHECK(record == ClusterRecord{});
  CHECK(change_table(record, first, 4, {}) == 1);
  CHECK(change_table(record, first, 4, {}) == 0);
  CHECK(change_table(record, second, 4, {}) == 2);
  CHECK(change_table(record, {}, 4, {}) == 3);
  CHECK(table_before(record, 1).value() == OverrideTable{});
  CHECK(table_before(record, 2).value() == first);
  CHECK(table_before(record, 3).value() == second);
  CHECK(table_before(record, 4).error().code() == StatusCode::NotFound);
  REQUIRE(record.balance_steps.size() == 3);
  CHECK(record.balance_steps[1].removed == std::vector<PlacementException>{{1, 0, 3}});
  CHECK(record.balance_steps[1].added == std::vector<PlacementException>{{1, 0, 4}, {9, 1, 0}});
  CHECK(record.balance_steps[1].reads_removed == std::vector<ReadShare>{{1, 2, 700}});
  CHECK(record.balance_steps[1].reads_added == std::vector<ReadShare>{{1, 2, 600}});
  CHECK(parse_cluster_record(encode(record)).value() == record);

  CHECK(change_table(record, first, 5, {}) == 4);
  CHECK(record.nodes.exceptions_bits == 5);
  CHECK(record.balance_steps.size() == 1);
  CHECK(table_before(record, 4).value() == OverrideTable{});
  CHECK_FALSE(table_before(record, 3));
}

TEST_CASE("balance steps: a record without read shares is written for earlier programs") {
  ClusterRecord record;
  REQUIRE(change_table(record, {{{1, 0, 3}}, {}}, 4, {}) == 1);
  CHECK(encode(record).substr(0, 2) == std::string("\4\0", 2));
  REQUIRE(change_table(record, {{{1, 0, 3}}, {{1, 3, 1000}}}, 4, {}) == 2);
  CHECK(encode(record).substr(0, 2) == std::string("\5\0", 2));
}

TEST_CASE("balance steps: reads are shifted between replicas, and go with a replica that moves") {
  ClusterView now = view(4, 6, 3);
  const std::vector<std::uint16_t> nodes = now.ideal_nodes(BucketId(4, 5)).to_vector();
  const auto shift = [&](std::uint16_t from, std::uint16_t to, std::uint16_t permille) {
    const std::vector<BalancedReplica> moves = {{5, from, to, 0, permille}};
    return with_moves(now, moves, 100);
  };
  const auto share_of = [](const OverrideTable& table, std::uint16_t node) {
    for (const ReadShare& row : table.reads) {
      if (row.node == node) return int{row.permille};
    }
    return -1;
  };
  const auto adopt = [&](const OverrideTable& table) {
    auto state = std::make_shared<ClusterState>(*now.state);
    state->set_exceptions(table.exceptions);
    state->set_read_shares(table.reads);
    now.state = std::move(state);
  };
  TableChange change = shift(nodes[0], nodes[1], 300);
  CHECK(change.left_out.empty());
  CHECK(change.table.rows() == 1);
  CHECK(share_of(change.table, nodes[0]) == 33);
  CHECK(share_of(change.table, nodes[1]) == 633);
  CHECK(share_of(change.table, nodes[2]) == 333);
  CHECK(with_moves(now, change.moves, 0).moves.empty());  // The table has no room.
  adopt(change.table);
  CHECK(shift(nodes[0], nodes[1], 300).moves.empty());  // The node has less than 300 permille left.
  const auto other = static_cast<std::uint16_t>(nodes[0] == 0 ? (nodes[1] == 1 ? 2 : 1) : 0);
  std::uint16_t outside = other;
  while (std::find(nodes.begin(), nodes.end(), outside) != nodes.end()) ++outside;
  CHECK(shift(nodes[1], outside, 100).moves.empty());  // `outside` has no replica.
  const std::vector<BalancedReplica> moves = {{5, nodes[1], outside, 7, 0}};
  change = with_moves(now, moves, 100);
  REQUIRE(change.moves.size() == 1);
  CHECK(share_of(change.table, outside) == 633);
  CHECK(share_of(change.table, nodes[1]) == -1);
  CHECK(change.table.rows() == 2);
  // The way back has the replica, with its reads, and then the reads that were shifted before.
  adopt(change.table);
  const std::vector<BalancedReplica> back = moves_between(now, OverrideTable{}, {});
  REQUIRE(back.size() == 2);
  CHECK(back[0] == BalancedReplica{5, outside, nodes[1], 0, 0});
  CHECK(back[1] == BalancedReplica{5, nodes[1], nodes[0], 0, 300});
}

TEST_CASE("balance rules: reads cost no bytes, and a bucket whose reads were shifted rests") {
  BalanceMoves last;
  last.update({step_of(1, {{3, 1, 2, 0, 200}})}, 10);
  CHECK(last.rests(3, 15));
  CHECK(last.last_of(3)->from == BalanceMoves::kNoNode);
  balancer::BalanceModel now = model(20);
  for (balancer::Slice& slice : now.slices) {
    slice.reads = 2 * std::exchange(slice.writes, 0);
    slice.holders.push_back({static_cast<std::uint16_t>((slice.range.begin + 1) % 4), 0.0});
  }
  now.step_bytes_max = 0;
  const std::vector<BalancedReplica> shifts = {{0, 0, 1, 0, 250}, {0, 0, 1, 0, 250}, {4, 0, 1, 0, 500}};
  CHECK(check_moves(shifts, now, {}).moves == shifts);
  CHECK(check_moves(shifts, now, last).moves == shifts);
  const double before = balancer::imbalance(now, balancer::node_loads(now));
  CHECK(imbalance_after(now, shifts) < before);
  const std::vector<BalancedReplica> mixed = {{0, 0, 1, 0, 250}, {0, 0, 2, 0, 0}};
  CHECK(check_moves(mixed, now, {}).moves.size() == 1);
}

TEST_CASE("balance rules: a step that only the expected loads speak for must do little harm by the measured ones") {
  BalanceProposal proposal;
  proposal.moves = {{0, 0, 1, 100}};
  const auto is_worth_it = [&](double before, double after, double expected_before, double expected_after) {
    proposal.before = before;
    proposal.after = after;
    proposal.expected_before = expected_before;
    proposal.expected_after = expected_after;
    return proposal.is_worth_it();
  };
  CHECK(is_worth_it(1.20, 1.10, 1.0, 1.0));
  CHECK_FALSE(is_worth_it(1.20, 1.19, 1.20, 1.19));
  CHECK(is_worth_it(1.04, 1.06, 1.30, 1.10));
  CHECK_FALSE(is_worth_it(1.04, 1.14, 1.30, 1.10));
  CHECK(is_worth_it(1.30, 1.30, 1.40, 1.20));
  proposal.moves.clear();
  CHECK_FALSE(is_worth_it(1.20, 1.10, 1.0, 1.0));
}

TEST_CASE("balance rules: what moves onto a node without a known load does not count") {
  const balancer::BalanceModel now = model(20);
  const double before = balancer::imbalance(now, balancer::node_loads(now));
  const auto unknown_node = static_cast<std::uint16_t>(now.nodes.size());
  const std::uint16_t holder = now.slices[0].holders.begin()->node;
  CHECK(imbalance_after(now, std::vector<BalancedReplica>{{0, holder, unknown_node, 0, 0}}) == before);
  CHECK(imbalance_after(now, std::vector<BalancedReplica>{{now.slices.size(), holder, 1, 0, 0}}) == before);
}

}  // namespace fjord::fleetcontroller
