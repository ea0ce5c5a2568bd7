// Orders of operators that are repeated or follow on one another, and what reports of earlier states are worth.

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "fleet_world.h"
#include "node_changes.h"

namespace fjord::fleetcontroller {

TEST_CASE("stop check: what a node has said about an earlier state counts for nothing") {
  // Each report in turn is of the state before: then nothing may be concluded that it alone allows.
  ClusterFacts facts = well();
  NodeFacts& empty = node_of(facts, NodeId::storage(0));
  empty.buckets = 0;
  const std::vector<NodeId> one = {empty.id};
  facts.is_changing = true;  // Only a node that holds nothing may stop now.
  CHECK(why_not_stop(facts, one).empty());
  --empty.state_version;
  CHECK_FALSE(why_not_stop(facts, one).empty());
  ++empty.state_version;
  empty.is_fresh = false;
  CHECK_FALSE(why_not_stop(facts, one).empty());
  empty.is_fresh = true;
  facts.is_changing = false;

  empty.wanted.state = NodeState::Retired;
  REQUIRE(why_not_remove(facts, one).empty());
  REQUIRE(why_not_stop(facts, {NodeId::storage(1)}).empty());
  REQUIRE(why_not_forget(facts).empty());
  REQUIRE(why_not_in_sync(facts).empty());
  --empty.state_version;
  CHECK_FALSE(why_not_remove(facts, one).empty());
  ++empty.state_version;
  for (NodeFacts& node : facts.nodes) {
    if (node.id.type != NodeType::Distributor) continue;
    INFO(node.id.to_string());
    --node.state_version;
    CHECK_FALSE(why_not_stop(facts, {NodeId::storage(1)}).empty());
    CHECK_FALSE(why_not_forget(facts).empty());
    CHECK_FALSE(why_not_in_sync(facts).empty());
    ++node.state_version;
  }
}

namespace {

ClusterRecord record_of_four() {
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  return record;
}

/// Makes the facts those after an order is in force.
void put_in_force(ClusterFacts& facts, NodeId id, NodeState state) {
  ClusterState next = *facts.active.state;
  next.set_node_state(id, state);
  facts.active = ClusterView::make(std::move(next), *facts.active.distribution);
  node_of(facts, id).state = state;
}

bool is_said(const rpc::ChangeNodesReply& reply, const std::string& text) {
  return std::any_of(reply.warnings.begin(), reply.warnings.end(),
                     [&](const std::string& warning) { return warning.find(text) != std::string::npos; });
}

}  // namespace

TEST_CASE("node changes: an order that is given again is not refused for what it did the first time") {
  const auto action = GENERATE(rpc::NodeAction::Maintenance, rpc::NodeAction::Down);
  const NodeState state = action == rpc::NodeAction::Down ? NodeState::Down : NodeState::Maintenance;
  ClusterRecord record = record_of_four();
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  request.action = action;
  request.nodes = {"storage.1"};
  request.force = action == rpc::NodeAction::Down;  // The node was not retired before.
  REQUIRE(change_nodes(record, facts, request, 5).refusals.empty());
  request.force = false;
  facts.is_changing = true;  // The state that the order makes is on its way.
  CHECK(change_nodes(record, facts, request, 6).refusals.empty());
  facts.is_changing = false;
  put_in_force(facts, NodeId::storage(1), state);
  node_of(facts, NodeId::distributor(0)).buckets_out_of_sync = 7;
  CHECK(change_nodes(record, facts, request, 7).refusals.empty());
  CHECK(record.wanted.at("storage.1").state == state);

  // What is new in the request is looked at as ever.
  request.nodes = {"storage.1", "storage.2"};
  CHECK_FALSE(change_nodes(record, facts, request, 8).refusals.empty());
  CHECK_FALSE(record.wanted.contains("storage.2"));
}

TEST_CASE("node changes: a node whose maintenance took too long is not put back into it without a look") {
  ClusterRecord record = record_of_four();
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Maintenance;
  request.nodes = {"storage.1"};
  REQUIRE(change_nodes(record, facts, request, 5).refusals.empty());
  put_in_force(facts, NodeId::storage(1), NodeState::Down);
  node_of(facts, NodeId::distributor(0)).buckets_out_of_sync = 7;
  CHECK_FALSE(change_nodes(record, facts, request, 6).refusals.empty());
}

TEST_CASE("node changes: a node that is being retired goes on with it after its maintenance, and up says so") {
  ClusterRecord record = record_of_four();
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  request.nodes = {"storage.1"};
  const auto order = [&](rpc::NodeAction action, const std::string& who) {
    request.action = action;
    request.who = who;
    request.reason = who + " knows why";
    rpc::ChangeNodesReply reply = change_nodes(record, facts, request, 5);
    REQUIRE(reply.status);
    REQUIRE(reply.refusals.empty());
    REQUIRE(parse_cluster_record(encode(record)).value() == record);
    return reply;
  };
  order(rpc::NodeAction::Retire, "ann");
  put_in_force(facts, NodeId::storage(1), NodeState::Retired);
  CHECK(is_said(order(rpc::NodeAction::Maintenance, "bob"), "being retired, which goes on after its maintenance"));
  put_in_force(facts, NodeId::storage(1), NodeState::Maintenance);
  order(rpc::NodeAction::Maintenance, "bob");  // A repetition changes nothing.
  CHECK(record.wanted.at("storage.1").state == NodeState::Maintenance);

  const rpc::ChangeNodesReply back = order(rpc::NodeAction::Up, "bob");
  CHECK(is_said(back, "storage.1 goes on being retired, as ann has ordered before (ann knows why)"));
  CHECK(back.plan.replicas_moved > 0);  // Away from it.
  CHECK(record.wanted.at("storage.1") == WantedState{NodeState::Retired, "ann knows why", "ann", 5});
  CHECK(record.wanted_after.empty());
  put_in_force(facts, NodeId::storage(1), NodeState::Retired);
  const rpc::ChangeNodesReply kept = order(rpc::NodeAction::Up, "bob");
  CHECK(is_said(kept, "no longer being retired, and gets its replicas back"));
  CHECK(kept.plan.replicas_moved > 0);
  CHECK(record.wanted.empty());

  // Another order of an operator ends the wish, too.
  for (const auto other : {rpc::NodeAction::Retire, rpc::NodeAction::Down, rpc::NodeAction::Remove}) {
    ClusterRecord again = record_of_four();
    again.wanted["storage.1"] = {NodeState::Maintenance, "disk", "bob", 5};
    again.wanted_after["storage.1"] = {NodeState::Retired, "old", "ann", 4};
    request.action = other;
    request.force = true;
    REQUIRE(change_nodes(again, facts, request, 6).status);
    CHECK(again.wanted_after.empty());
  }
}

}  // namespace fjord::fleetcontroller
