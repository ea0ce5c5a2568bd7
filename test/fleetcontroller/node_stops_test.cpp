// Nodes that say that they stop, or that they start.

#include <catch2/catch.hpp>
#include <string>

#include "fleet_world.h"
#include "node_monitor.h"

namespace fjord::fleetcontroller {
namespace {

constexpr NodeId kS1 = NodeId::storage(1);

MonotonicTime at(std::int64_t ms) { return MonotonicTime{1'000'000'000} + milliseconds(ms); }

/// storage.1 as seen by a controller that learns of every event at once.
struct Followed {
  Followed() {
    options.crashes_max = 1;
    generator.down_after = milliseconds(1800);
    generator.crashes_max = 1;
    generator.transition_time = seconds(10);
  }
  NodeState says(std::int64_t ms, NodeState what) {
    monitor.on_answer(at(ms), incarnation, plain(what), 0, options);
    return judged(ms);
  }
  NodeState judged(std::int64_t ms) {
    monitor.on_time(at(ms), options);
    state = generate_state(state, {monitor.report()}, DistributionConfig::flat(2, 1), generator, at(ms)).state;
    return state.node(kS1).state;
  }

  MonitorOptions options;
  GeneratorOptions generator;
  std::uint64_t incarnation = 7;
  NodeMonitor monitor{kS1, 7};
  ClusterState state;
};

}  // namespace

TEST_CASE("stops: a node that has said that it stops has not crashed, however often it is restarted") {
  Followed node;
  CHECK(node.says(0, NodeState::Up) == NodeState::Up);
  for (std::int64_t round = 0; round < 20; ++round) {
    INFO(round);
    const std::int64_t ms = 4500 * round;  // It answers often enough not to be silent.
    CHECK(node.says(ms + 1000, NodeState::Stopping) == NodeState::Maintenance);
    if (round % 3 == 0) CHECK(node.judged(ms + 3500) == NodeState::Maintenance);  // Or it is back before it was silent.
    ++node.incarnation;
    if (round % 2 == 0) CHECK(node.says(ms + 3600, NodeState::Initializing) == NodeState::Maintenance);
    CHECK(node.says(ms + 4000, NodeState::Up) == NodeState::Up);
    CHECK(node.monitor.report().crashes == 0);
  }
  // As against one that only ends.
  node.judged(105'000);
  ++node.incarnation;
  node.says(106'000, NodeState::Up);
  node.judged(110'000);
  CHECK(node.monitor.report().crashes == 2);
}

TEST_CASE(
    "stops: a node that starts is in maintenance for the transition time since it went away, and down afterwards") {
  const auto end = GENERATE(NodeState::Stopping, NodeState::Up);  // What it said before it went away.
  Followed node;
  CHECK(node.says(0, NodeState::Up) == NodeState::Up);
  node.says(1000, end);
  CHECK(node.judged(4000) == NodeState::Maintenance);
  ++node.incarnation;
  for (std::int64_t ms = 5000; ms < 11'000; ms += 500) {
    CHECK(node.says(ms, NodeState::Initializing) == NodeState::Maintenance);
  }
  CHECK(node.says(11'100, NodeState::Initializing) == NodeState::Down);
  CHECK(node.says(12'000, NodeState::Up) == NodeState::Up);
}

TEST_CASE("stops: a node that was down stays so while it starts") {
  Followed node;
  node.says(0, NodeState::Up);
  CHECK(node.judged(20'000) == NodeState::Down);
  ++node.incarnation;
  CHECK(node.says(20'100, NodeState::Initializing) == NodeState::Down);
}

TEST_CASE("stops: the controller tells a node that stops at once that it knows, and takes it out") {
  const std::string name = GENERATE(as<std::string>(), "storage.1", "distributor.0");
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(1));
  AnsweringNode& node = fleet.node(name);
  node.node_state = "s:s";
  const int polls = node.polls;
  REQUIRE(fleet.world.scheduler.run_until([&] { return node.polls > polls; }, milliseconds(350)));
  // The next poll, which confirms the answer, does not wait for the interval.
  fleet.world.scheduler.run_for(milliseconds(100));
  CHECK(node.polls > polls + 1);
  REQUIRE(fleet.run_until_all_know(2, milliseconds(500)));
  CHECK_FALSE(fleet.state().is_up(*NodeId::parse(name)));
  const auto reason = [&] {
    for (const rpc::NodeStatus& one : fleet.caller.ask(kController, rpc::GetStatus{}).nodes) {
      if (one.node == name) return one.reason;
    }
    return std::string("no such node");
  };
  CHECK(reason() == "is being stopped");
  fleet.stop_node(name);
  fleet.world.scheduler.run_for(seconds(3));
  CHECK(reason() == "was stopped");
  fleet.start_node(name);
  fleet.node(name).node_state = "s:i i:0.003";
  fleet.world.scheduler.run_for(seconds(1));
  CHECK(reason() == "is starting: lists its buckets");
}

}  // namespace fjord::fleetcontroller
