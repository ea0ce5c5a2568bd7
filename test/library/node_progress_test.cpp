#include "fjord/library/detail/node_progress.h"

#include <catch2/catch.hpp>

namespace fjord {
namespace {

/// Cluster state 4 in force, with a distributor and a storage node in this state that holds `buckets`.
rpc::GetStatusReply with_storage_node(const std::string& state, std::uint64_t buckets) {
  rpc::GetStatusReply status;
  status.info.state_version = 4;
  for (const char* name : {"distributor.0", "storage.0"}) {
    rpc::NodeStatus node;
    node.node = name;
    node.state = "up";
    node.last.state_version = 4;
    status.nodes.push_back(std::move(node));
  }
  status.nodes[1].state = state;
  status.nodes[1].last.buckets = buckets;
  return status;
}

NodeChangeProgress progress(const rpc::GetStatusReply& status, NodeAction action, std::uint64_t planned_in) {
  std::uint64_t most = 0;
  const NodeChange change{.action = action, .nodes = {"storage.0"}};
  NodePlan plan;
  plan.nodes = {"storage.0"};
  plan.state_version = planned_in;
  return progress_of(status, change, plan, most);
}

}  // namespace

TEST_CASE("node progress: a change is in force with the next cluster state, and done when the node is empty") {
  CHECK_FALSE(progress(with_storage_node("up", 3), NodeAction::Retire, 4).is_in_force);
  const NodeChangeProgress moving = progress(with_storage_node("retired", 3), NodeAction::Retire, 3);
  CHECK(moving.is_in_force);
  CHECK(moving.buckets_left == 3);
  CHECK(progress(with_storage_node("retired", 0), NodeAction::Retire, 3).buckets_left == 0);
}

TEST_CASE("node progress: a change to the state that the node has already waits for no new cluster state") {
  CHECK(progress(with_storage_node("retired", 0), NodeAction::Retire, 4).is_in_force);
  CHECK(progress(with_storage_node("maintenance", 0), NodeAction::Maintenance, 4).is_in_force);
  CHECK(progress(with_storage_node("down", 0), NodeAction::Down, 4).is_in_force);
  CHECK_FALSE(progress(with_storage_node("maintenance", 0), NodeAction::Retire, 4).is_in_force);
  CHECK_FALSE(progress(with_storage_node("up", 0), NodeAction::SetCapacity, 4).is_in_force);

  rpc::GetStatusReply status = with_storage_node("retired", 0);
  status.info.pending_state = "version:5";
  CHECK_FALSE(progress(status, NodeAction::Retire, 4).is_in_force);
}

TEST_CASE("node progress: a node that is added or replaced has to be up, and what it waits for is said") {
  rpc::GetStatusReply status = with_storage_node("down", 0);
  status.nodes[1].reason = "never answered";
  for (const NodeAction action : {NodeAction::Add, NodeAction::Replace}) {
    const NodeChangeProgress waiting = progress(status, action, 3);
    CHECK_FALSE(waiting.is_in_force);
    CHECK(waiting.waits_for == std::vector<std::string>{"storage.0: never answered"});
    CHECK(to_string(waiting) == "waits for storage.0: never answered");
    const NodeChangeProgress up = progress(with_storage_node("up", 2), action, 3);
    CHECK(up.is_in_force);
    CHECK(up.waits_for.empty());
    CHECK(to_string(up) == "0 buckets left");
  }
  CHECK(progress(status, NodeAction::SetCapacity, 3).is_in_force);
  CHECK(progress(status, NodeAction::SetCapacity, 3).waits_for.empty());
}

TEST_CASE("node progress: only a change that brings nodes back waits for buckets that are unavailable") {
  rpc::GetStatusReply status = with_storage_node("retired", 0);
  status.nodes[0].last.buckets_unavailable = 2;
  CHECK(progress(status, NodeAction::Retire, 3).buckets_left == 0);
  CHECK(progress(status, NodeAction::Up, 3).buckets_left == 2);
  status.nodes[0].last.buckets_out_of_sync = 1;
  CHECK(progress(status, NodeAction::Retire, 3).buckets_left == 1);
}

}  // namespace fjord
