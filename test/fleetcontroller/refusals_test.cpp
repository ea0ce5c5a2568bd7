// Nodes whose machines refuse connections because the processes have ended.

#include <catch2/catch.hpp>

#include "node_monitor.h"
#include "publication.h"

namespace fjord::fleetcontroller {
namespace {

constexpr NodeId kS1 = NodeId::storage(1);
constexpr NodeId kD1 = NodeId::distributor(1);

MonotonicTime at(std::int64_t ms) { return MonotonicTime{1'000'000'000} + milliseconds(ms); }

/// storage.1 as seen by a controller that learns of every event at once.
struct Followed {
  explicit Followed(NodeState says = NodeState::Up) { answers(0, says); }
  void answers(std::int64_t ms, NodeState says = NodeState::Up, std::uint64_t incarnation = 7) {
    monitor.on_answer(at(ms), incarnation, plain(says), 0, options);
  }
  bool refuses(std::int64_t ms) {
    monitor.on_refused(at(ms), options);
    return monitor.report().is_gone;
  }
  NodeState judged(std::int64_t ms) {
    monitor.on_time(at(ms), options);
    const GeneratedState next =
        generate_state(state, {monitor.report()}, DistributionConfig::flat(2, 1), generator, at(ms));
    state = next.state;
    return state.node(kS1).state;
  }

  MonitorOptions options;
  GeneratorOptions generator = [] {
    GeneratorOptions made;
    made.down_after = milliseconds(1800);
    return made;
  }();
  NodeMonitor monitor{kS1, 7};
  ClusterState state;
};

}  // namespace

TEST_CASE("refusals: a node is gone when it has refused for refused_after, and down at once") {
  Followed node;
  CHECK(node.judged(10) == NodeState::Up);
  CHECK_FALSE(node.refuses(100));
  CHECK(node.monitor.is_suspect());
  CHECK_FALSE(node.refuses(300));
  CHECK_FALSE(node.refuses(499));
  CHECK(node.judged(499) == NodeState::Up);
  CHECK(node.refuses(500));
  CHECK_FALSE(node.monitor.is_suspect());
  CHECK(node.judged(500) == NodeState::Down);
  CHECK(node.state.node(kS1).description.find("refuses") != std::string::npos);
  node.answers(600, NodeState::Up, 8);
  CHECK(node.judged(600) == NodeState::Up);
  CHECK(node.state.node(kS1).up_since_version == node.state.version());
}

TEST_CASE("refusals: one is not enough, however short refused_after is") {
  Followed node;
  node.options.refused_after = milliseconds(1);
  CHECK_FALSE(node.refuses(100));
  CHECK(node.refuses(101));
}

TEST_CASE("refusals: an answer, another failure, and a controller that stood still begin the count anew") {
  Followed node;
  CHECK_FALSE(node.refuses(100));
  CHECK_FALSE(node.refuses(300));
  const int what = GENERATE(0, 1, 2);
  if (what == 0) node.answers(400);
  if (what == 1) node.monitor.not_refused();
  if (what == 2) node.monitor.excuse(milliseconds(50));
  CHECK_FALSE(node.monitor.is_suspect());
  CHECK_FALSE(node.refuses(600));
  CHECK_FALSE(node.refuses(900));
  CHECK(node.judged(900) == NodeState::Up);
  CHECK(node.refuses(1000));
}

TEST_CASE("refusals: with refused_after 0 they are as good as silence") {
  Followed node;
  node.options.refused_after = Duration(0);
  CHECK(node.judged(10) == NodeState::Up);
  for (std::int64_t ms = 100; ms <= 1800; ms += 100) CHECK_FALSE(node.refuses(ms));
  CHECK(node.judged(1800) == NodeState::Up);
  CHECK(node.judged(1801) == NodeState::Down);
}

TEST_CASE("refusals: a node that never answered this controller is not called gone") {
  NodeMonitor monitor(kS1, 7);
  for (std::int64_t ms = 0; ms < 5000; ms += 100) monitor.on_refused(at(ms), {});
  CHECK_FALSE(monitor.report().is_gone);
  CHECK(monitor.report().crashes == 0);
}

TEST_CASE("refusals: an outage is one crash, whether it is noticed by refusals, by silence or by the restart") {
  Followed node;
  CHECK_FALSE(node.refuses(100));
  CHECK(node.refuses(500));
  for (std::int64_t ms = 600; ms < 3000; ms += 100) node.refuses(ms);
  CHECK(node.judged(3000) == NodeState::Down);
  CHECK(node.monitor.report().crashes == 1);
  node.answers(3100, NodeState::Up, 8);
  CHECK(node.monitor.report().crashes == 1);
  CHECK_FALSE(node.refuses(3200));
  node.answers(3300, NodeState::Up, 9);  // The node is back before it counted as gone.
  CHECK(node.monitor.report().crashes == 2);
}

TEST_CASE("refusals: a node whose start ends so is held down until it is up") {
  Followed node(NodeState::Initializing);
  CHECK_FALSE(node.refuses(100));
  CHECK(node.refuses(600));
  node.answers(700, NodeState::Initializing, 8);
  CHECK(node.judged(700) == NodeState::Down);
  node.answers(800, NodeState::Up, 8);
  CHECK(node.judged(800) == NodeState::Up);
}

TEST_CASE("refusals: the transition time counts from the last answer, and silence afterwards does not extend it") {
  Followed node;
  node.generator.transition_time = seconds(10);
  CHECK(node.judged(10) == NodeState::Up);
  CHECK_FALSE(node.refuses(100));
  CHECK(node.refuses(500));
  CHECK(node.judged(500) == NodeState::Maintenance);
  CHECK(node.judged(9990) == NodeState::Maintenance);
  CHECK(node.judged(10'001) == NodeState::Down);
  node.monitor.not_refused();
  CHECK(node.judged(10'002) == NodeState::Down);
  node.answers(11'000, NodeState::Up, 8);
  CHECK(node.judged(11'000) == NodeState::Up);
}

TEST_CASE("publication: a storage node that is gone is not waited for; a distributor's lease is, whatever is said") {
  const ClusterState active = *ClusterState::parse("version:4 distributor:2 storage:2");
  const ClusterState pending = *ClusterState::parse("version:5 distributor:2 .1.s:d storage:2 .1.s:d");
  const ClusterState without_change = *ClusterState::parse("version:5 distributor:2 storage:2");
  const MonotonicTime now = at(0);
  const NodeProgress storage{kS1, 4, now - milliseconds(500), true};
  const NodeProgress distributor{kD1, 4, now - milliseconds(500), true};
  const PublicationLimits limits{seconds(1), milliseconds(100)};
  const auto why = [&](const NodeProgress& node, const ClusterState& next, Duration pending_for = Duration(0)) {
    return why_not_yet(active, next, {node}, now - pending_for, limits, now);
  };
  CHECK(why(storage, pending).empty());
  CHECK(why(storage, without_change) == "waits for storage.1");
  CHECK(why(distributor, pending) == "waits for distributor.1");
  // pending_max does not shorten a lease; the last answer is half a second old.
  CHECK(why(distributor, pending, milliseconds(450)) == "waits for distributor.1");
  const NodeProgress later{kD1, 4, now - milliseconds(1001), true};
  CHECK(why(later, pending).empty());
}

}  // namespace fjord::fleetcontroller
