#include "state_generator.h"

#include <catch2/catch.hpp>
#include <optional>

namespace fjord::fleetcontroller {
namespace {

constexpr NodeId kS0 = NodeId::storage(0);
constexpr NodeId kS1 = NodeId::storage(1);
constexpr NodeId kD0 = NodeId::distributor(0);

MonotonicTime at(std::int64_t ms) { return MonotonicTime{1'000'000'000} + milliseconds(ms); }

/// A controller's reports of storage.0, storage.1 and distributor.0, and the state generated from them.
struct World {
  World() {
    for (NodeId id : {kS0, kS1, kD0}) {
      NodeReport report;
      report.id = id;
      reports.push_back(report);
    }
  }
  NodeReport& report(NodeId id) {
    for (NodeReport& r : reports) {
      if (r.id == id) return r;
    }
    FAIL("no such node");
    return reports.front();
  }
  void answers(NodeId id, std::int64_t ms, std::uint64_t incarnation, NodeState says = NodeState::Up) {
    NodeReport& r = report(id);
    r.answered = true;
    r.last_answer = at(ms);
    r.incarnation = incarnation;
    r.reported = plain(says);
    if (says == NodeState::Initializing) r.reported.init_progress = 0.5;
    if (says == NodeState::Stopping) r.stopping_since = at(ms);
  }
  void all_answer(std::int64_t ms) {
    for (NodeReport& r : reports) answers(r.id, ms, r.incarnation == 0 ? 50 : r.incarnation);
  }
  /// Returns true if there is a new version.
  bool generate(std::int64_t ms) {
    GeneratedState generated = generate_state(state, reports, distribution, options, at(ms));
    ClusterState next = std::move(generated.state);
    const bool is_new = next != state;
    CHECK(is_new == generated.is_new);
    CHECK(next.version() == state.version() + (is_new ? 1 : 0));
    if (is_new) {
      for (NodeReport& r : reports) {
        if (r.answered) r.published_incarnation = r.incarnation;
      }
    }
    state = std::move(next);
    return is_new;
  }
  /// Starts another controller process, which knows the published state.
  void restart_controller(std::int64_t grace_until_ms) {
    options.grace_until = at(grace_until_ms);
    for (NodeReport& r : reports) {
      NodeReport fresh;
      fresh.id = r.id;
      fresh.published_incarnation = r.published_incarnation;
      r = fresh;
    }
  }
  std::uint64_t since(NodeId id) const { return state.node(id).up_since_version; }

  DistributionConfig distribution = DistributionConfig::flat(2, 2);
  GeneratorOptions options = [] {
    GeneratorOptions made;
    made.down_after = milliseconds(1800);
    made.grace_until = at(2500);
    return made;
  }();
  std::vector<NodeReport> reports;
  ClusterState state;
};

std::optional<NodePast> past_of(const World& world, NodeId id) { return world.state.node(id).past; }

}  // namespace

TEST_CASE("state generator: a process that has kept all of the published one lives since that one was started") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(0));
  const auto restart = [&](std::int64_t ms, std::uint64_t incarnation, std::vector<std::uint64_t> kept_from) {
    world.all_answer(ms);
    world.answers(kS0, ms, incarnation);
    for (NodeReport& report : world.reports) {
      if (report.id == kS0) report.kept_from = kept_from;
    }
    REQUIRE(world.generate(ms));
    CHECK(world.since(kS0) == world.state.version());
  };
  restart(100, 51, {50});
  CHECK(past_of(world, kS0) == NodePast{1, {}});
  // A process in between that the controller never heard is no harm if it had kept all, too.
  restart(200, 53, {50, 51, 52});
  CHECK(past_of(world, kS0) == NodePast{1, {}});
  // The last one that is known is not among them: something was lost between the two.
  restart(300, 55, {54});
  CHECK(past_of(world, kS0) == std::nullopt);
}

TEST_CASE("state generator: the state tells a node that was silent from one that has restarted") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(0));
  CHECK(past_of(world, kS0) == std::nullopt);
  world.answers(kS0, 10, 50, NodeState::Down);
  REQUIRE(world.generate(10));
  CHECK(past_of(world, kS0) == NodePast{1, {{2, 0}}});
  world.answers(kS1, 20, 50, NodeState::Down);
  REQUIRE(world.generate(20));
  CHECK(past_of(world, kS1) == NodePast{1, {{3, 0}}});
  world.answers(kS0, 30, 50);
  REQUIRE(world.generate(30));
  CHECK(past_of(world, kS0) == NodePast{1, {{2, 4}}});
  CHECK(past_of(world, kD0) == std::nullopt);
  CHECK(ClusterState::parse(world.state.to_string())->node(kS1).past == NodePast{1, {{3, 0}}});

  SECTION("the other one is restarted") {
    world.answers(kS1, 40, 51);
    REQUIRE(world.generate(40));
    CHECK(past_of(world, kS1) == NodePast{5, {{3, 5}}});
  }
  SECTION("the other one is restarted while it is down, and a state comes before it is up") {
    world.answers(kS1, 40, 51, NodeState::Down);
    world.answers(kS0, 40, 50, NodeState::Down);
    REQUIRE(world.generate(40));
    CHECK(past_of(world, kS1) == NodePast{5, {{3, 0}}});
    world.answers(kS1, 50, 51);
    REQUIRE(world.generate(50));
    CHECK(past_of(world, kS1) == NodePast{5, {{3, 6}}});
  }
  SECTION("it restarts without being called down") {
    world.answers(kS0, 40, 51);
    REQUIRE(world.generate(40));
    CHECK(past_of(world, kS0) == NodePast{5, {{2, 4}}});
  }
  SECTION("a new leader does not hear the other one, and hears it later as another process") {
    world.restart_controller(1000);
    world.answers(kS0, 40, 50);
    world.answers(kD0, 40, 50);
    CHECK_FALSE(world.generate(40));
    world.answers(kS1, 50, 51);
    REQUIRE(world.generate(50));
    CHECK(past_of(world, kS1) == NodePast{5, {{3, 5}}});
  }
}

TEST_CASE("state generator: a state that was never in force takes no node down") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(0));
  const ClusterState active = world.state;
  world.options.in_force = &active;
  world.answers(kS0, 10, 50, NodeState::Down);
  REQUIRE(world.generate(10));  // Pending, and then replaced: the state in force is still the first one.
  SECTION("both are away under the state that replaces it") {
    world.answers(kS1, 20, 50, NodeState::Down);
    REQUIRE(world.generate(20));
    CHECK(past_of(world, kS0) == NodePast{1, {{3, 0}}});
    CHECK(past_of(world, kS1) == NodePast{1, {{3, 0}}});
  }
  SECTION("the node is back before the state is in force") {
    world.answers(kS0, 20, 50);
    REQUIRE(world.generate(20));
    CHECK(world.since(kS0) == 3);
    CHECK(past_of(world, kS0) == NodePast{1, {}});
  }
  SECTION("the node is back as another process") {
    world.answers(kS0, 20, 51, NodeState::Down);
    world.answers(kS1, 20, 50, NodeState::Down);
    REQUIRE(world.generate(20));
    world.answers(kS0, 30, 51);
    REQUIRE(world.generate(30));
    CHECK(past_of(world, kS0) == NodePast{3, {}});
  }
}

TEST_CASE("state generator: nothing is claimed of what the state of an earlier fleet controller does not tell") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(0));
  world.state = *ClusterState::parse("version:7 bits:8 distributor:1 .0.v:1 storage:1 .0.v:3");
  world.answers(kS0, 10, 50, NodeState::Down);
  REQUIRE(world.generate(10));
  CHECK(past_of(world, kS0) == NodePast{3, {{8, 0}}});
  CHECK(past_of(world, kS1) == std::nullopt);  // Version 7 does not list it.

  world.state = *ClusterState::parse("version:7 bits:8 distributor:1 .0.v:1 storage:2 .0.s:d .1.v:3");
  world.answers(kS0, 20, 50);
  REQUIRE(world.generate(20));
  CHECK(past_of(world, kS0) ==
        NodePast{8, {{7, 8}}});  // It was down under version 7; the state does not say since when.
}

TEST_CASE("state generator: the state lists the features that all serving nodes announce") {
  World world;
  world.all_answer(0);
  for (NodeReport& r : world.reports) r.features = {"a", "forget"};
  world.report(kS1).features = {"b"};  // Node 1 runs a program of another version.
  REQUIRE(world.generate(0));
  CHECK(world.state.features().empty());

  SECTION("it is replaced") {
    world.answers(kS1, 10, 51);
    world.report(kS1).features = {"a", "forget", "newer"};
    CHECK(world.generate(10));
    CHECK(world.state.features() == std::vector<std::string>{"a", "forget"});
    CHECK(world.state.announces("forget"));
    // The node restarts with an earlier program: the state that shows the restart lists fewer features.
    world.answers(kS1, 20, 52);
    world.report(kS1).features = {"a"};
    CHECK(world.generate(20));
    CHECK(world.state.features() == std::vector<std::string>{"a"});
  }
  SECTION("it goes down") {
    world.answers(kS1, 10, 50, NodeState::Down);
    CHECK(world.generate(10));
    CHECK(world.state.announces("forget"));
  }
}

TEST_CASE("state generator: read shares are in the state while all serving nodes know them, and the bits fit") {
  World world;
  world.all_answer(0);
  for (NodeReport& r : world.reports) r.features = {"read_shares"};
  world.report(kS1).features = {};
  world.options.read_shares = {{1, 0, 1000}};
  world.options.exceptions_bits = world.state.bits();
  REQUIRE(world.generate(0));
  CHECK(world.state.read_shares().empty());
  world.options.exceptions_bits = world.state.bits();
  world.report(kS1).features = {"read_shares"};
  CHECK(world.generate(10));
  CHECK(world.state.read_shares().size() == 1);
  world.report(kS1).features = {};
  CHECK(world.generate(20));
  CHECK(world.state.read_shares().empty());
  world.report(kS1).features = {"read_shares"};
  CHECK(world.generate(30));
  CHECK(world.state.read_shares().size() == 1);
  world.options.exceptions_bits = world.state.bits() + 1;
  CHECK(world.generate(40));
  CHECK(world.state.read_shares().empty());
}

TEST_CASE("state generator: a new leader keeps the features until it has heard the nodes") {
  World world;
  world.all_answer(0);
  for (NodeReport& r : world.reports) r.features = {"forget"};
  REQUIRE(world.generate(0));
  world.restart_controller(1000);
  for (NodeReport& r : world.reports) r.features.clear();
  CHECK_FALSE(world.generate(10));
  CHECK(world.state.announces("forget"));
  world.answers(kS0, 20, 50);  // storage.0 announces no features.
  CHECK(world.generate(20));
  CHECK(world.state.features().empty());
}

TEST_CASE("state generator: the first state is version 1 with everybody up who answered, since version 1") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  CHECK(world.state.version() == 1);
  CHECK(world.state.bits() == 8);
  for (NodeId id : {kS0, kS1, kD0}) {
    CHECK(world.state.is_up(id));
    CHECK(world.since(id) == 1);
  }
}

TEST_CASE("state generator: there is a first state even if nobody answered") {
  World world;
  REQUIRE(world.generate(3000));
  CHECK(world.state.version() == 1);
  for (NodeId id : {kS0, kS1, kD0}) CHECK_FALSE(world.state.is_up(id));
}

TEST_CASE("state generator: assured replicas fall with what new buckets get, and rise when so many are in sync") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  CHECK(world.state.replicas_assured() == 2);
  SECTION("nodes that are emptied count for nothing, also once they are to stay again") {
    world.report(kS1).wanted.state = NodeState::Retired;
    REQUIRE(world.generate(20));
    CHECK(world.state.replicas_assured() == 1);
    world.report(kS1).wanted.state = NodeState::Up;
    REQUIRE(world.generate(30));
    CHECK(world.state.replicas_assured() == 1);
  }
  SECTION("more are wanted") {
    world.distribution = world.distribution.with_redundancy(1);
    REQUIRE(world.generate(20));
    CHECK(world.state.replicas_assured() == 1);
    world.distribution = world.distribution.with_redundancy(2);
    CHECK_FALSE(world.generate(30));
  }
  SECTION("a state of before says nothing") {
    world.state.set_replicas_assured(0);
    REQUIRE(world.generate(20));
    CHECK(world.state.replicas_assured() == 1);
  }
  world.options.replicas_in_sync = 2;
  REQUIRE(world.generate(40));
  CHECK(world.state.replicas_assured() == 2);
  world.options.replicas_in_sync = 0;
  CHECK_FALSE(world.generate(50));
  // A node that was down may come back.
  world.answers(kS0, 5000, 50);
  world.answers(kD0, 5000, 50);
  REQUIRE(world.generate(5000));
  CHECK_FALSE(world.state.is_up(kS1));
  CHECK(world.state.replicas_assured() == 2);
}

TEST_CASE("state generator: without news the state stays as it is") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  for (std::int64_t ms = 100; ms < 5000; ms += 100) {
    world.all_answer(ms);
    REQUIRE_FALSE(world.generate(ms + 50));
  }
  CHECK(world.state.version() == 1);
}

TEST_CASE("state generator: a node is down when it was silent for longer than down_after, not before") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.answers(kS0, 1000, 50);
  world.answers(kD0, 1000, 50);
  CHECK_FALSE(world.generate(1800));
  REQUIRE(world.generate(1801));
  CHECK_FALSE(world.state.is_up(kS1));
  CHECK(world.since(kS1) == 0);
  CHECK(world.state.is_up(kS0));
  CHECK(world.since(kS0) == 1);

  // The same process comes back; its replicas may be outdated nevertheless.
  world.answers(kS1, 1900, 50);
  REQUIRE(world.generate(1950));
  CHECK(world.state.is_up(kS1));
  CHECK(world.since(kS1) == 3);
  CHECK(world.since(kS0) == 1);
}

TEST_CASE("state generator: a node that says it is not up is not") {
  const NodeState said = GENERATE(NodeState::Down, NodeState::Initializing, NodeState::Stopping);
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.answers(kS1, 20, 50, said);
  REQUIRE(world.generate(30));
  CHECK(world.state.node(kS1).state == (said == NodeState::Stopping ? NodeState::Down : said));
  world.answers(kS1, 40, 50);
  REQUIRE(world.generate(50));
  CHECK(world.since(kS1) == 3);
}

TEST_CASE("state generator: a restart between two answers is a new version with a new up_since_version") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.answers(kS1, 300, 51);
  REQUIRE(world.generate(310));
  CHECK(world.state.is_up(kS1));
  CHECK(world.since(kS1) == 2);
  CHECK(world.since(kS0) == 1);
  CHECK_FALSE(world.generate(320));  // The state changes only once.

  world.answers(kD0, 400, 51);
  REQUIRE(world.generate(410));
  CHECK(world.since(kD0) == 3);
}

TEST_CASE("state generator: a restarted controller waits for nodes that were up, for as long as the grace lasts") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.restart_controller(10'000);
  CHECK_FALSE(world.generate(7600));
  world.answers(kS0, 7700, 50);
  CHECK_FALSE(world.generate(9500));
  REQUIRE(world.generate(9501));  // The grace does not apply, as storage.0 had answered this controller.
                                  // storage.0 has been silent for too long.
  CHECK_FALSE(world.state.is_up(kS0));
  CHECK(world.state.is_up(kS1));
}

TEST_CASE("state generator: a restarted controller notices who restarted while it was away") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.restart_controller(10'000);
  world.answers(kS0, 7500, 50);
  world.answers(kD0, 7500, 50);
  CHECK_FALSE(world.generate(7600));
  world.answers(kS1, 7700, 99);
  REQUIRE(world.generate(7710));
  CHECK(world.state.version() == 2);
  CHECK(world.since(kS1) == 2);
  CHECK(world.since(kS0) == 1);
}

TEST_CASE("state generator: when the grace is over, who did not answer is down") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.restart_controller(10'000);
  world.answers(kS0, 9900, 50);
  world.answers(kD0, 9900, 50);
  CHECK_FALSE(world.generate(9999));
  REQUIRE(world.generate(10'000));
  CHECK(world.state.is_up(kS0));
  CHECK_FALSE(world.state.is_up(kS1));
}

TEST_CASE("state generator: other distribution bits are a new version") {
  World world;
  world.all_answer(0);
  REQUIRE(world.generate(10));
  world.options.distribution_bits = 9;
  REQUIRE(world.generate(20));
  CHECK(world.state.version() == 2);
  CHECK(world.state.bits() == 9);
  CHECK(world.since(kS0) == 1);
}

}  // namespace fjord::fleetcontroller
