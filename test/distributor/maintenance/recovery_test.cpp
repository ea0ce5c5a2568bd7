#include "maintenance/recovery.h"

#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string>

namespace fjord::distributor {
namespace {

using Nodes = std::vector<std::uint16_t>;

std::uint64_t epoch(std::uint64_t state_version, std::uint64_t step = 1) {
  return ReplicaSet::make_epoch(state_version, step);
}

/// Returns a report of a replica whose content has `checksum`; equal checksums stand for equal entries.
ReplicaReport says(std::uint16_t node, std::uint64_t replica_epoch, Nodes set, std::uint64_t checksum = 7) {
  ReplicaReport report;
  report.node = node;
  report.info.entries = 3;
  report.info.checksum = checksum;
  report.info.max_timestamp_us = 100u + node;
  report.set = {replica_epoch, std::move(set)};
  return report;
}

ReplicaReport empty(ReplicaReport report) {
  report.info = {};
  return report;
}

/// Returns a state of ten storage nodes, up since state version 1 except those in `since`; version 0 means down.
ClusterState state_with(const std::map<std::uint16_t, std::uint64_t>& since) {
  ClusterState state;
  state.set_version(20);
  for (std::uint16_t i = 0; i < 10; ++i) {
    NodeStateInfo info;
    info.up_since_version = 1;
    if (auto found = since.find(i); found != since.end()) {
      info.state = found->second == 0 ? NodeState::Down : NodeState::Up;
      info.up_since_version = found->second;
    }
    state.set_node(NodeId::storage(i), info);
  }
  return state;
}

struct Situation {
  std::string what;
  std::map<std::uint16_t, std::uint64_t> up_since = {};  ///< Nodes not up since version 1; 0: down.
  std::vector<ReplicaReport> reports = {};
  NodeList ideal = {};
  std::size_t absent = 0;
  bool available = true;
  Nodes members = {};
  Nodes catching_up = {};
  Nodes obsolete = {};
  bool differ = false;
  bool install = false;
  bool has_spare = true;
};

void check(const Situation& s) {
  INFO(s.what);
  RecoveryPlan plan = plan_recovery(s.reports, state_with(s.up_since), s.ideal, s.absent, s.has_spare);
  CHECK(plan.available == s.available);
  CHECK(plan.reason.empty() == s.available);
  if (!s.available || !plan.available) return;
  CHECK(plan.members == s.members);
  CHECK(plan.catching_up == s.catching_up);
  CHECK(plan.obsolete == s.obsolete);
  CHECK(plan.differ == s.differ);
  CHECK(plan.install == s.install);
}

const std::uint64_t kSet = epoch(10);

}  // namespace

TEST_CASE("recovery: a set whose nodes all report, or of which one was up all the time, may be served") {
  check({.what = "all as it was: nothing to write down",
         .reports = {says(1, kSet, {1, 2}), says(2, kSet, {1, 2})},
         .ideal = {1, 2},
         .members = {1, 2}});
  check({.what = "the other member is away; the one that is up never was",
         .up_since = {{2, 0}},
         .reports = {says(1, kSet, {1, 2})},
         .ideal = {1, 3},
         .absent = 1,
         .members = {1},
         .catching_up = {3},
         .install = true});
  check({.what = "both members restarted, and both are back",
         .up_since = {{1, 15}, {2, 16}},
         .reports = {says(1, kSet, {1, 2}), says(2, kSet, {1, 2})},
         .ideal = {1, 2},
         .absent = 3,
         .members = {1, 2},
         .install = true});
  check({.what = "a node counts as up without a break if it came up with the very version of the set",
         .up_since = {{1, 10}, {2, 0}},
         .reports = {says(1, kSet, {1, 2})},
         .ideal = {1, 3},
         .absent = 1,
         .members = {1},
         .catching_up = {3},
         .install = true});
  check({.what = "the step within a state version does not make a node younger than the set",
         .up_since = {{1, 10}, {2, 0}},
         .reports = {says(1, epoch(10, 77), {1, 2})},
         .ideal = {1, 3},
         .absent = 1,
         .members = {1},
         .catching_up = {3},
         .install = true});
}

TEST_CASE("recovery: a replica that came back alone is not served while another may be newer") {
  check({.what = "restarted, and the other member is away",
         .up_since = {{1, 15}, {2, 0}},
         .reports = {says(1, kSet, {1, 2})},
         .ideal = {1, 3},
         .absent = 1,
         .available = false});
  check({.what = "came up one version after the set was made",
         .up_since = {{1, 11}, {2, 0}},
         .reports = {says(1, kSet, {1, 2})},
         .ideal = {1, 3},
         .absent = 1,
         .available = false});
  check({.what = "two of three members are back, both restarted",
         .up_since = {{1, 15}, {2, 15}, {3, 0}},
         .reports = {says(1, kSet, {1, 2, 3}), says(2, kSet, {1, 2, 3})},
         .ideal = {1, 2, 4},
         .absent = 1,
         .available = false});
  check({.what = "the other member is up and lost its files, and a third node is away",
         .up_since = {{1, 15}, {2, 16}, {3, 0}},
         .reports = {says(1, kSet, {1, 2})},
         .ideal = {1, 2},
         .absent = 1,
         .available = false});
  check({.what = "the same reports with every node there: nobody is left who could know better",
         .up_since = {{1, 15}, {2, 16}},
         .reports = {says(1, kSet, {1, 2})},
         .ideal = {1, 2},
         .absent = 0,
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "only a replica that was being filled, while a node is away: its members may be there",
         .up_since = {{2, 0}},
         .reports = {says(3, 0, {})},
         .ideal = {3, 4},
         .absent = 1,
         .available = false});
}

namespace {

/// The past of node 1, which was called down from version 12 until 15 and whose process lived all the time.
const NodePast kSilent = {.alive_since_version = 1, .absences = {{12, 15}}};

/// Returns a state of version 20 with the nodes 0 to 3. Node 1 was silent, node 2 is down since version 11, the others
/// are up since version 1.
ClusterState silence_beside_a_dead_node() {
  ClusterState state = state_with({{1, 15}, {2, 0}});
  for (std::uint16_t i = 4; i < 10; ++i) state.set_node_state(NodeId::storage(i), NodeState::Down);
  const auto set_past = [&](std::uint16_t index, NodePast past) {
    NodeStateInfo info = state.node(NodeId::storage(index));
    info.past = std::move(past);
    state.set_node(NodeId::storage(index), std::move(info));
  };
  set_past(1, kSilent);
  set_past(2, {.alive_since_version = 1, .absences = {{11, 0}}});
  return state;
}

/// Returns a report of node 1 about a set of the nodes 1 and 2 is believed in this state.
bool may_serve(const ClusterState& state, std::uint64_t set_epoch = kSet, Nodes nodes = {1, 2}) {
  return plan_recovery(std::vector{says(1, set_epoch, std::move(nodes))}, state, {1, 3}, 1, true).available;
}

ClusterState with_node(ClusterState state, std::uint16_t index, NodeState is, std::uint64_t up_since,
                       std::optional<NodePast> past) {
  NodeStateInfo info = state.node(NodeId::storage(index));
  info.state = is;
  info.up_since_version = up_since;
  info.past = std::move(past);
  state.set_node(NodeId::storage(index), std::move(info));
  return state;
}

}  // namespace

TEST_CASE("recovery: a member that was silent while the others were dead is served") {
  const ClusterState state = silence_beside_a_dead_node();
  const RecoveryPlan plan = plan_recovery(std::vector{says(1, kSet, {1, 2})}, state, {1, 3}, 1, true);
  REQUIRE(plan.available);
  CHECK(plan.members == Nodes{1});
  CHECK(plan.catching_up == Nodes{3});
  CHECK(plan.install);

  CHECK(may_serve(with_node(state, 2, NodeState::Down, 0, NodePast{1, {{12, 0}}})));
  CHECK(may_serve(with_node(state, 2, NodeState::Maintenance, 0, NodePast{1, {{12, 0}}})));
  CHECK(may_serve(with_node(state, 1, NodeState::Retired, 15, kSilent)));
  // Silent twice, and the set is of before, or of between.
  const NodePast twice = {1, {{12, 15}, {17, 19}}};
  CHECK(may_serve(with_node(state, 1, NodeState::Up, 19, twice)));
  CHECK(may_serve(with_node(state, 1, NodeState::Up, 19, twice), epoch(16)));
  // The state that called it down was never in force, and so its absence is not listed.
  CHECK(may_serve(with_node(state, 1, NodeState::Up, 15, NodePast{1, {}})));
}

TEST_CASE("recovery: all were silent, each for a while of its own, and one of them has died") {
  ClusterState state = silence_beside_a_dead_node();
  state = with_node(state, 1, NodeState::Up, 15, NodePast{1, {{11, 15}}});
  state = with_node(state, 3, NodeState::Up, 17, NodePast{1, {{11, 17}}});
  CHECK(may_serve(state, kSet, {1, 2, 3}));
  // Node 3 has come back meanwhile. It lives, it was asked, and it knows nothing newer.
  state = with_node(state, 3, NodeState::Up, 13, NodePast{1, {{11, 13}}});
  CHECK(may_serve(state, kSet, {1, 2, 3}));
  // It was restarted while it was away.
  CHECK(may_serve(with_node(state, 3, NodeState::Up, 13, NodePast{13, {{11, 13}}})));
  // It was restarted after that. Its earlier process may have known more.
  CHECK_FALSE(may_serve(with_node(state, 3, NodeState::Up, 19, NodePast{19, {{11, 13}}})));
}

TEST_CASE("recovery: members that were silent one after the other are served together") {
  const auto served = [](const Absence& of_1, const NodePast& of_2) {
    ClusterState state = silence_beside_a_dead_node();
    state = with_node(state, 1, NodeState::Up, of_1.until, NodePast{1, {of_1}});
    state = with_node(state, 2, NodeState::Up, of_2.absences.front().until, of_2);
    state = with_node(state, 3, NodeState::Down, 0, NodePast{1, {{14, 0}}});
    const std::vector<ReplicaReport> both = {says(1, kSet, {1, 2, 3}), says(2, kSet, {1, 2, 3})};
    CHECK_FALSE(plan_recovery(std::span(both).first(1), state, {1, 2, 3}, 1, true).available);
    CHECK_FALSE(plan_recovery(std::span(both).last(1), state, {1, 2, 3}, 1, true).available);
    return plan_recovery(both, state, {1, 2, 3}, 1, true).available;
  };
  // Whichever set node 3 had a part in, one of the two was told of it before it was in force.
  CHECK(served({13, 15}, {1, {{11, 12}}}));
  CHECK(served({13, 15}, {1, {{11, 13}}}));
  // Node 3 may have gone on alone when both were away at once, or with what another process of node 2 has forgotten.
  CHECK_FALSE(served({13, 15}, {1, {{11, 14}}}));
  CHECK_FALSE(served({13, 15}, {12, {{11, 12}}}));
}

TEST_CASE("recovery: a member that was silent is not served if a newer set may exist without it") {
  const ClusterState state = silence_beside_a_dead_node();
  const auto with = [&](std::uint16_t index, NodeState is, std::uint64_t up_since, std::optional<NodePast> past) {
    return with_node(state, index, is, up_since, std::move(past));
  };
  INFO("node 2 died one version later");
  CHECK_FALSE(may_serve(with(2, NodeState::Down, 0, NodePast{1, {{13, 0}}})));
  INFO("node 2 was back for a while when node 1 was silent");
  CHECK_FALSE(may_serve(with(2, NodeState::Down, 0, NodePast{1, {{11, 13}, {14, 0}}})));
  INFO("node 1 has restarted");
  CHECK_FALSE(may_serve(with(1, NodeState::Up, 15, NodePast{15, {{12, 15}}})));
  INFO("node 1 has restarted after the set was made, and before it was silent");
  CHECK_FALSE(may_serve(with(1, NodeState::Up, 15, NodePast{11, {{12, 15}}})));
  INFO("node 1 was silent twice, and node 2 was alone in the first time");
  CHECK_FALSE(may_serve(with(1, NodeState::Up, 19, NodePast{1, {{10, 11}, {12, 15}}}), epoch(9)));
  INFO("a node that is no member was there and is down now: a member may have filled it and named it in a new set");
  CHECK_FALSE(may_serve(with(3, NodeState::Down, 0, NodePast{1, {{16, 0}}})));
  INFO("the state is of a fleet controller that says nothing of the past");
  CHECK_FALSE(may_serve(with(1, NodeState::Up, 15, std::nullopt)));
  CHECK_FALSE(may_serve(with(2, NodeState::Down, 0, std::nullopt)));
  INFO("a member that the state does not list");
  CHECK_FALSE(may_serve(state, kSet, {1, 2, 70}));
}

TEST_CASE("recovery: a set that a member did not hear of, though it was there, is not waited for") {
  const std::uint64_t unserved = epoch(10, 2);
  check({.what = "node 2 has the earlier set, node 3 got the next one and was away since then, node 1 is gone",
         .up_since = {{1, 0}, {3, 15}},
         .reports = {says(2, kSet, {1, 2, 3}), says(3, unserved, {1, 2, 3})},
         .ideal = {2, 3, 4},
         .absent = 1,
         .members = {2, 3},
         .catching_up = {4},
         .install = true});
  check({.what = "node 2 was away as well, and the set may have been served without it",
         .up_since = {{1, 0}, {2, 12}, {3, 15}},
         .reports = {says(2, kSet, {1, 2, 3}), says(3, unserved, {1, 2, 3})},
         .ideal = {2, 3, 4},
         .absent = 1,
         .available = false});
}

TEST_CASE("recovery: a replica of an older set is no member, however long it was up") {
  const std::uint64_t newer = epoch(12);
  check({.what = "missed the newer set; is to be filled",
         .reports = {says(1, newer, {1, 3}), says(2, kSet, {1, 2}), says(3, newer, {1, 3})},
         .ideal = {1, 2},
         .members = {1, 3},
         .catching_up = {2},
         .install = true});
  check({.what = "missed the newer set and does not belong here any more: looked through and deleted",
         .reports = {says(1, newer, {1, 3}), says(2, kSet, {1, 2}), says(3, newer, {1, 3})},
         .ideal = {1, 3},
         .members = {1, 3},
         .obsolete = {2}});
  check({.what = "two stale returners do not outvote the one member that is up",
         .up_since = {{3, 0}},
         .reports = {says(1, kSet, {1, 2, 4}), says(2, newer, {2, 3}), says(4, kSet, {1, 2, 4})},
         .ideal = {1, 2},
         .absent = 1,
         .members = {2},
         .catching_up = {1},
         .obsolete = {4},
         .install = true});
  check({.what = "holds the newest set, which names it no more: it is no member",
         .reports = {says(1, newer, {1, 3}), says(2, newer, {1, 3}), says(3, newer, {1, 3})},
         .ideal = {1, 3},
         .members = {1, 3},
         .obsolete = {2}});
  check({.what = "dropped from the set and up all the time, while all its members are away",
         .up_since = {{1, 0}, {3, 0}},
         .reports = {says(2, newer, {1, 3})},
         .ideal = {2, 4},
         .absent = 2,
         .available = false});
}

TEST_CASE("recovery: a set that was written down on some of its nodes only is finished from those that have it") {
  const std::uint64_t next = epoch(10, 2);
  check({.what = "3 was filled and joined; 2 has not heard of it, so it was not served, and 2 lacks nothing",
         .reports = {says(1, next, {1, 2, 3}), says(2, kSet, {1, 2}), says(3, next, {1, 2, 3})},
         .ideal = {1, 2, 3},
         .members = {1, 2, 3},
         .install = true});
  check({.what = "the same, and 2 was away since: it may have forgotten the set, and what was written under it",
         .up_since = {{2, 15}},
         .reports = {says(1, next, {1, 2, 3}), says(2, kSet, {1, 2}), says(3, next, {1, 2, 3})},
         .ideal = {1, 2, 3},
         .members = {1, 3},
         .catching_up = {2},
         .install = true});
  check({.what = "what 2 holds is something else",
         .reports = {says(1, next, {1, 2}), says(2, kSet, {1, 2}, 8)},
         .ideal = {1, 2},
         .members = {1, 2},
         .differ = true,
         .install = true});
  check({.what = "the same while other nodes are away: all nodes of the set are here, so nothing newer exists",
         .up_since = {{1, 15}, {2, 15}, {3, 15}, {7, 0}},
         .reports = {says(1, next, {1, 2, 3}), says(2, kSet, {1, 2}), says(3, next, {1, 2, 3})},
         .ideal = {1, 2, 3},
         .absent = 1,
         .members = {1, 3},
         .catching_up = {2},
         .install = true});
  check({.what = "one node alone got the new set before everybody restarted, and the third is away",
         .up_since = {{1, 15}, {2, 15}, {3, 0}},
         .reports = {says(1, next, {1, 2, 3}), says(2, kSet, {1, 2})},
         .ideal = {1, 2},
         .absent = 1,
         .available = false});
}

TEST_CASE("recovery: the nodes of the ideal state are filled, surplus members are kept until then") {
  check({.what = "the bucket moves to two other nodes",
         .reports = {says(1, kSet, {1, 2}), says(2, kSet, {1, 2})},
         .ideal = {3, 4},
         .members = {1, 2},
         .catching_up = {3, 4},
         .install = true});
  check({.what = "one member stays: the ideal order comes first",
         .reports = {says(1, kSet, {1, 2}), says(2, kSet, {1, 2})},
         .ideal = {2, 3},
         .members = {2, 1},
         .catching_up = {3},
         .install = true});
  check({.what = "a replica that is being filled already goes on being filled",
         .reports = {says(1, kSet, {1}), says(2, 0, {})},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "a replica that was being filled and is not wanted any more",
         .reports = {says(1, kSet, {1, 2}), says(2, kSet, {1, 2}), says(3, 0, {})},
         .ideal = {1, 2},
         .members = {1, 2},
         .obsolete = {3}});
  check({.what = "nothing but replicas that were being filled, with every node there",
         .reports = {says(3, 0, {}), says(5, 0, {})},
         .ideal = {3, 4},
         .members = {3, 5},
         .catching_up = {4},
         .install = true});
  check({.what = "more members than the redundancy, all of them up",
         .reports = {says(1, kSet, {1, 2, 3}), says(2, kSet, {1, 2, 3}), says(3, kSet, {1, 2, 3})},
         .ideal = {1, 3},
         .members = {1, 3, 2}});
  check({.what = "one of three members is away and not wanted: it leaves the set before anything is served",
         .up_since = {{2, 0}},
         .reports = {says(1, kSet, {1, 2, 3}), says(3, kSet, {1, 2, 3})},
         .ideal = {1, 3},
         .absent = 1,
         .members = {1, 3},
         .install = true});
}

TEST_CASE("recovery: members are compared by checksum and number of entries, others are not") {
  Situation equal{.what = "a replica that counts for nothing may hold anything",
                  .reports = {says(1, kSet, {1, 2}, 7), says(2, kSet, {1, 2}, 7), says(3, epoch(4), {3}, 8)},
                  .ideal = {1, 2},
                  .members = {1, 2},
                  .obsolete = {3}};
  check(equal);
  Situation differ = equal;
  differ.what = "another checksum";
  differ.reports[1].info.checksum = 8;
  differ.differ = true;
  check(differ);
  differ.what = "another number of entries";
  differ.reports[1].info.checksum = 7;
  differ.reports[1].info.entries = 4;
  check(differ);
  differ.what = "the last of three differs";
  differ.reports = {says(1, kSet, {1, 2, 4}), says(2, kSet, {1, 2, 4}), says(4, kSet, {1, 2, 4}, 9)};
  differ.ideal = {1, 2, 4};
  differ.members = {1, 2, 4};
  differ.obsolete = {};
  check(differ);
}

TEST_CASE("recovery: the plan says the newest epoch and the last timestamp of any replica") {
  std::vector<ReplicaReport> reports = {says(1, kSet, {1, 2}), says(2, kSet, {1, 2}), says(3, epoch(4), {3})};
  RecoveryPlan plan = plan_recovery(reports, state_with({}), {1, 2}, 0, true);
  CHECK(plan.newest.epoch == kSet);
  // Timestamp of the obsolete replica, on node 3. It counts because a write may have reached this replica alone.
  CHECK(plan.max_timestamp_us == 103);
}

TEST_CASE("recovery: a member that was not told of the newest set is needed if all that were are damaged") {
  const auto damaged = [](ReplicaReport report) {
    report.damaged = true;
    return report;
  };
  const std::uint64_t newest = epoch(10, 2);
  check({.what = "one was told and is intact, and the other was away: it may lack what was served since",
         .up_since = {{2, 15}},
         .reports = {says(1, newest, {1, 2}), says(2, kSet, {1, 2})},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "one was told and is damaged: the set was never served, and the other has all that was",
         .reports = {damaged(says(1, newest, {1, 2})), says(2, kSet, {1, 2})},
         .ideal = {1, 2},
         .members = {1, 2},
         .differ = true,
         .install = true});
  check({.what = "the other is damaged too",
         .reports = {damaged(says(1, newest, {1, 2})), damaged(says(2, kSet, {1, 2}))},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "the other was no member",
         .reports = {damaged(says(1, newest, {1})), says(2, kSet, {1, 2})},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "the other was only being filled",
         .reports = {damaged(says(1, newest, {1, 2})), says(2, kSet, {1})},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "the other was filled, and the newest set takes it in: it has all that was served",
         .reports = {damaged(says(1, newest, {1, 2})), says(2, 0, {})},
         .ideal = {1, 2},
         .members = {1, 2},
         .differ = true,
         .install = true});
  check({.what = "the same, and it was away since",
         .up_since = {{2, 15}},
         .reports = {damaged(says(1, newest, {1, 2})), says(2, 0, {})},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "the same, and it is damaged too",
         .reports = {damaged(says(1, newest, {1, 2})), damaged(says(2, 0, {}))},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "it was filled, but the newest set is one without it",
         .reports = {damaged(says(1, newest, {1})), says(2, 0, {})},
         .ideal = {1, 2},
         .members = {1},
         .catching_up = {2},
         .install = true});
  check({.what = "it was filled, but one of two that were told is intact",
         .reports = {damaged(says(1, newest, {1, 2, 3})), says(2, 0, {}), says(3, newest, {1, 2, 3})},
         .ideal = {1, 2},
         .members = {1, 3},
         .catching_up = {2},
         .install = true});
}

TEST_CASE("recovery: a bucket whose birth was interrupted is made, with all nodes that it would be made with") {
  Situation born{.what = "2 was up all the time and holds nothing: nobody was ever served",
                 .reports = {empty(says(1, kSet, {1, 2, 3}))},
                 .ideal = {1, 2, 3},
                 .members = {1, 2, 3},
                 .install = true};
  check(born);
  Situation elsewhere = born;
  elsewhere.what = "and other nodes than then are to hold it";
  elsewhere.ideal = {2, 4, 5};
  elsewhere.members = {2, 4, 5};
  elsewhere.obsolete = {1};
  check(elsewhere);
  Situation broken = born;
  broken.what = "what is there has lost something, and is repaired from those who hold nothing";
  broken.reports[0].damaged = true;
  broken.differ = true;
  check(broken);
}

TEST_CASE("recovery: a bucket that was never written to is made again if a member may never have had it") {
  Situation unwritten{.what = "2 is away: it may not have made the bucket, so 1 must not serve it alone",
                      .up_since = {{2, 0}},
                      .reports = {empty(says(1, kSet, {1, 2}))},
                      .ideal = {1, 3},
                      .absent = 1,
                      .members = {1, 3},
                      .install = true};
  check(unwritten);
  unwritten.what = "2 was away since";
  unwritten.up_since = {{2, 15}};
  unwritten.absent = 0;
  unwritten.ideal = {1, 2};
  unwritten.members = {1, 2};
  check(unwritten);
}

TEST_CASE("recovery: a bucket that was just made on all nodes of its set gets a set that says so") {
  Situation born{.what = "nothing was written to it",
                 .reports = {empty(says(1, kSet, {1, 2})), empty(says(2, kSet, {1, 2}))},
                 .ideal = {1, 2},
                 .members = {1, 2},
                 .install = true};
  check(born);
  born.what = "the set says so already";
  born.install = false;
  for (ReplicaReport& report : born.reports) report.set.epoch = epoch(10, kBirthStep + 1);
  check(born);
}

TEST_CASE("recovery: a bucket of which a member has no replica is an old one if that may have another reason") {
  Situation old{.what = "something was written to it",
                .reports = {says(1, kSet, {1, 2})},
                .ideal = {1, 2},
                .members = {1},
                .catching_up = {2},
                .install = true};
  check(old);
  old.what = "something was written to it, and 2 is away";
  old.up_since = {{2, 0}};
  old.absent = 1;
  check(old);
  old.what = "all that was written to it was removed and forgotten";
  old.reports = {empty(says(1, kSet, {1, 2}))};
  old.reports[0].info.max_timestamp_us = 1;
  check(old);
  old.what = "2 is away, and all buckets were made ahead";
  old.has_spare = false;
  old.reports = {empty(says(1, kSet, {1, 2}))};
  check(old);
  old.has_spare = true;
  old.what = "2 is away, and the set says that the bucket was made on all its nodes";
  old.reports = {empty(says(1, epoch(10, kBirthStep + 1), {1, 2}))};
  check(old);
  old.up_since = {};
  old.absent = 0;
  old.what = "another node had it before";
  old.reports = {empty(says(1, kSet, {1, 2})), empty(says(3, epoch(4), {3, 4}))};
  old.obsolete = {3};
  check(old);
  old.what = "a node that was to be filled has it";
  old.reports = {empty(says(1, kSet, {1, 2})), empty(says(3, 0, {}))};
  check(old);
}

namespace {

/// Returns the plan for a bucket of set {1, 2}, made in state version 10, of which node 1 reports a replica and node 2
/// came back without its data. Node 1 has restarted since, and has been available since version `available_since`.
RecoveryPlan plan_without_two(std::uint64_t available_since, NodeState state_of_two = NodeState::Up) {
  ClusterState state = state_with({{1, 15}, {2, 15}});
  NodeStateInfo one = state.node(NodeId::storage(1));
  one.available_since_version = available_since;
  state.set_node(NodeId::storage(1), one);
  NodeStateInfo two = state.node(NodeId::storage(2));
  two.state = state_of_two;
  two.lost_version = 15;
  state.set_node(NodeId::storage(2), two);
  const std::vector<ReplicaReport> reports = {says(1, kSet, {1, 2})};
  return plan_recovery(reports, state, {1, 2}, 1, true);
}

}  // namespace

TEST_CASE("recovery: a member that came back without its data is not waited for if the other one was always there") {
  const RecoveryPlan plan = plan_without_two(10);
  CHECK(plan.available);
  CHECK(plan.members == Nodes{1});
  CHECK(plan.catching_up == Nodes{2});
  CHECK(plan.install);
  CHECK(plan_without_two(10, NodeState::Retired).available);
  CHECK(plan_without_two(10, NodeState::Initializing).available);
}

TEST_CASE("recovery: what a member that lost its data may have taken alone is unavailable and not just gone") {
  for (const RecoveryPlan& plan : {plan_without_two(11), plan_without_two(10, NodeState::Down)}) {
    CHECK_FALSE(plan.available);
    CHECK(plan.reason == "its newest documents may be on storage.2 (came back without its data)");
  }
}

}  // namespace fjord::distributor
