// Behaviours from other controllers' suites; the ids are those of vectors/behaviours.tsv. Rows without a case are in
// behaviours-controller.tsv.

#include <catch2/catch.hpp>

#include "fleet_world.h"
#include "node_changes.h"
#include "node_monitor.h"
#include "publication.h"

namespace fjord::fleetcontroller {
namespace {

constexpr NodeId kNode = NodeId::storage(1);

/// Storage nodes 0 to 2 and distributor 0; the tests act on node 1.
class Life {
 public:
  Life() {
    monitor_options.stable_period = seconds(60);
    monitor_options.crashes_max = 3;
    options.down_after = monitor_options.down_after;
    options.crashes_max = 3;
    options.transition_time = seconds(5);
    for (NodeId id : {NodeId::storage(0), kNode, NodeId::storage(2), NodeId::distributor(0)}) {
      monitors.emplace_back(id, 0);
    }
  }
  /// Lets time pass; every node except kNode answers each 100 ms.
  bool pass(Duration time) {
    bool is_new = false;
    for (const MonotonicTime end = now + time; now < end;) {
      now = now + milliseconds(100);
      for (NodeMonitor& monitor : monitors) {
        if (monitor.report().id != kNode) monitor.on_answer(now, 1, plain(NodeState::Up), 0, monitor_options);
      }
      if (answers) says(said);
      is_new = generate() || is_new;
    }
    return is_new;
  }
  bool says(NodeStateInfo info) {
    node().on_answer(now, incarnation, info, bits, monitor_options);
    return generate();
  }
  bool generate() {
    std::vector<NodeReport> reports;
    for (NodeMonitor& monitor : monitors) {
      monitor.on_time(now, monitor_options);
      reports.push_back(monitor.report());
    }
    GeneratedState next = generate_state(state, reports, DistributionConfig::flat(3, 2), options, now);
    state = next.state;
    if (next.is_new) {
      for (NodeMonitor& monitor : monitors) {
        if (monitor.report().answered) monitor.set_published(monitor.report().incarnation);
      }
    }
    return next.is_new;
  }
  void start_up() {
    answers = true;
    pass(seconds(1));
    REQUIRE(at() == NodeState::Up);
  }
  NodeMonitor& node() { return monitors[1]; }
  NodeState at() const { return state.node(kNode).state; }

  MonitorOptions monitor_options;
  GeneratorOptions options;
  std::vector<NodeMonitor> monitors;
  ClusterState state;
  MonotonicTime now{1'000'000'000};
  bool answers = false;
  NodeStateInfo said = plain(NodeState::Up);
  std::uint64_t incarnation = 1;
  unsigned bits = 0;
};

NodeStateInfo initializing(double progress) {
  NodeStateInfo info = plain(NodeState::Initializing);
  info.init_progress = progress;
  return info;
}

}  // namespace

TEST_CASE("B1138 node life cycle: a node goes down, initializing, up, in versions that rise") {
  Life life;
  life.pass(seconds(1));
  CHECK(life.at() == NodeState::Down);
  std::uint64_t version = life.state.version();
  REQUIRE(life.says(initializing(0.5)));
  CHECK(life.at() == NodeState::Initializing);
  CHECK(life.state.version() == ++version);
  REQUIRE(life.says(plain(NodeState::Up)));
  CHECK(life.at() == NodeState::Up);
  CHECK(life.state.version() == ++version);
}

TEST_CASE("B1140 node life cycle: a restart so quick that no outage was seen is a new version") {
  Life life;
  life.start_up();
  ++life.incarnation;
  const std::uint64_t version = life.state.version();
  CHECK(life.says(plain(NodeState::Up)));
  CHECK(life.state.version() == version + 1);
  CHECK(life.state.node(kNode).up_since_version == version + 1);
}

TEST_CASE(
    "B1141 node life cycle: a node that announces its end is in maintenance at once, and down when it stays away") {
  Life life;
  life.start_up();
  life.answers = false;
  REQUIRE(life.says(plain(NodeState::Stopping)));
  CHECK(life.at() == NodeState::Maintenance);
  life.pass(milliseconds(4900));
  CHECK(life.at() == NodeState::Maintenance);
  life.pass(milliseconds(300));
  CHECK(life.at() == NodeState::Down);
  CHECK(life.node().report().crashes == 0);  // The row is called
                                             // transition_from_controlled_stop_to_down_does_not_add_to_crash_counter.
}

TEST_CASE("B1142 node life cycle: a node that does not answer for a moment is where it was") {
  Life life;
  life.start_up();
  life.answers = false;
  CHECK_FALSE(life.pass(milliseconds(1700)));
  life.answers = true;
  CHECK_FALSE(life.pass(seconds(5)));
}

TEST_CASE("B1145 node life cycle: a node is down when it is away for longer than its grace, retired or not") {
  const NodeState wanted = GENERATE(NodeState::Up, NodeState::Retired);
  Life life;
  life.node().set_wanted({wanted, "", "", 0});
  life.answers = true;
  life.pass(seconds(1));
  CHECK(life.at() == wanted);
  life.answers = false;
  life.pass(seconds(3));
  CHECK(life.at() == NodeState::Maintenance);
  life.pass(seconds(5));
  CHECK(life.at() == NodeState::Down);
}

TEST_CASE(
    "B1146 node life cycle: a node that starts is initializing with its progress, once it has listed its buckets") {
  Life life;
  life.pass(seconds(1));
  CHECK_FALSE(life.says(initializing(0.005)));
  CHECK(life.at() == NodeState::Down);
  CHECK(life.says(initializing(0.1)));
  CHECK(life.state.node(kNode).init_progress == 0.1);
}

TEST_CASE("B1148 node life cycle: progress that goes back keeps a node down until it is up") {
  Life life;
  life.pass(seconds(1));
  life.says(initializing(0.6));
  REQUIRE(life.says(initializing(0.3)));
  CHECK(life.at() == NodeState::Down);
  CHECK_FALSE(life.says(initializing(0.9)));
  CHECK(life.says(plain(NodeState::Up)));
  CHECK(life.at() == NodeState::Up);
}

TEST_CASE("B1149 node life cycle: a node that goes away while it starts is not shown as starting again, only as up") {
  Life life;
  life.pass(seconds(1));
  life.says(initializing(0.6));
  if (GENERATE(true, false)) {
    ++life.incarnation;
  } else {
    life.pass(seconds(3));
  }
  life.says(initializing(0.7));
  CHECK(life.at() == NodeState::Down);
  life.says(plain(NodeState::Up));
  CHECK(life.at() == NodeState::Up);
}

TEST_CASE("B1150 node life cycle: a node that crashes again and again stays down until it is stable") {
  Life life;
  life.start_up();
  for (int i = 0; i < 3; ++i) {
    ++life.incarnation;
    life.pass(seconds(5));
    CHECK(life.at() == NodeState::Up);
  }
  ++life.incarnation;
  life.pass(seconds(5));
  CHECK(life.at() == NodeState::Down);
  life.pass(seconds(50));
  CHECK(life.at() == NodeState::Down);
  life.pass(seconds(10));
  CHECK(life.at() == NodeState::Up);
  ++life.incarnation;  // The process restarts; its earlier crashes no longer count.
  life.pass(seconds(1));
  CHECK(life.at() == NodeState::Up);
  // A silence counts as one crash, whether or not another process answers afterwards.
  life.answers = false;
  life.pass(seconds(10));
  ++life.incarnation;
  life.answers = true;
  life.pass(seconds(1));
  CHECK(life.node().report().crashes == 2);
}

TEST_CASE("B1152 node life cycle: with too small a share of the storage nodes the cluster is down, and comes back") {
  Life life;
  life.options.storage_up_ratio_min = 0.7;
  life.start_up();
  CHECK(life.state.is_cluster_up());
  life.answers = false;
  life.pass(seconds(8));
  CHECK_FALSE(life.state.is_cluster_up());
  life.answers = true;
  life.pass(seconds(1));
  CHECK(life.state.is_cluster_up());
}

TEST_CASE("B1156 bits: more distribution bits are in force when every node has split so far, in one step") {
  Life life;
  life.options.distribution_bits = 5;
  life.bits = 5;
  life.start_up();
  CHECK(life.state.bits() == 5);
  life.options.distribution_bits = 8;
  life.pass(seconds(1));
  CHECK(life.state.bits() == 5);
  life.bits = 7;
  life.pass(seconds(1));
  CHECK(life.state.bits() == 5);
  life.bits = 8;
  life.pass(seconds(1));
  CHECK(life.state.bits() == 8);
}

TEST_CASE("node life cycle: what changes while the cluster is down is published at once") {
  Life life;
  life.options.storage_up_ratio_min = 0.7;
  life.start_up();
  life.answers = false;
  life.pass(seconds(20));
  const std::uint64_t version = life.state.version();
  CHECK_FALSE(life.state.is_cluster_up());
  CHECK(life.state.description() ==
        "too low available storage node ratio: 2 of 3 are up (0.67), and controller.storage_up_ratio_min is 0.70");
  CHECK_FALSE(life.pass(seconds(5)));
  life.monitors[2].set_wanted({NodeState::Down, "", "", 0});
  REQUIRE(life.pass(seconds(1)));
  CHECK(life.state.version() == version + 1);
  CHECK(life.state.node(NodeId::storage(2)).state == NodeState::Down);
  CHECK(life.state.description().find("1 of 3 are up (0.33)") != std::string::npos);
  life.options.storage_up_ratio_min = 0.5;  // The reason then names the new limit.
  REQUIRE(life.pass(seconds(1)));
  CHECK(life.state.description().ends_with("controller.storage_up_ratio_min is 0.50"));
  life.answers = true;
  life.pass(seconds(1));
  CHECK(life.state.is_cluster_up());
  CHECK(life.state.description().empty());
  CHECK(life.at() == NodeState::Up);
}

TEST_CASE("maintenance: a node counts as down when an operator wants it there for longer than the limit") {
  constexpr std::int64_t kHourUs = 3'600'000'000;
  Life life;
  life.start_up();
  life.options.maintenance_max = seconds(3600);
  life.options.wall_now_us = 10 * kHourUs;
  life.node().set_wanted({NodeState::Maintenance, "disk", "ann", 10 * kHourUs});
  life.answers = GENERATE(true, false);  // The node answers, or it has no running process.
  life.pass(seconds(20));
  CHECK(life.at() == NodeState::Maintenance);
  life.options.wall_now_us = 11 * kHourUs;
  CHECK_FALSE(life.generate());
  life.options.wall_now_us = 11 * kHourUs + 1'000'000;
  REQUIRE(life.generate());
  CHECK(life.at() == NodeState::Down);
  CHECK(life.state.node(kNode).description ==
        "in maintenance for 60 min, longer than controller.maintenance_max=60 min");
  life.options.maintenance_max = seconds(0);  // 0 means no limit.
  life.generate();
  CHECK(life.at() == NodeState::Maintenance);
}

TEST_CASE("groups: a node that retires is no failure of its group") {
  const DistributionConfig groups = *DistributionConfig::parse("redundancy:2 (root (a 0 1) (b 2 3))");
  std::vector<NodeReport> reports;
  for (std::uint16_t i = 0; i < 4; ++i) {
    NodeReport report;
    report.id = NodeId::storage(i);
    report.answered = true;
    report.last_answer = MonotonicTime{1'000'000};
    report.reported = plain(NodeState::Up);
    reports.push_back(report);
  }
  reports[0].wanted.state = NodeState::Retired;
  GeneratorOptions options;
  options.down_after = seconds(2);
  options.group_up_ratio_min = 0.8;
  const auto state = [&] { return generate_state({}, reports, groups, options, MonotonicTime{1'000'000}).state; };
  CHECK(state().node(NodeId::storage(0)).state == NodeState::Retired);
  CHECK(state().node(NodeId::storage(1)).state == NodeState::Up);
  reports[1].reported = plain(NodeState::Down);
  CHECK(state().node(NodeId::storage(0)).state == NodeState::Down);
  CHECK(state().node(NodeId::storage(2)).state == NodeState::Up);
}

TEST_CASE("B1164 bits: fewer distribution bits are in force at once") {
  Life life;
  life.bits = 8;
  life.start_up();
  life.options.distribution_bits = 6;
  life.generate();
  CHECK(life.state.bits() == 6);
}

TEST_CASE("B1165 bits: a node with more bits than wanted does not raise them") {
  Life life;
  life.bits = 20;
  life.start_up();
  CHECK(life.state.bits() == 8);
}

TEST_CASE("B1166 bits: a node with fewer bits lowers them") {
  Life life;
  life.start_up();
  life.bits = 6;
  life.pass(seconds(1));
  CHECK(life.state.bits() == 6);
}

TEST_CASE("B1176 versions: equal content is no new version") {
  Life life;
  life.start_up();
  CHECK_FALSE(life.pass(seconds(30)));
}

TEST_CASE("B1177 versions: progress alone is no new version") {
  Life life;
  life.pass(seconds(1));
  CHECK(life.says(initializing(0.2)));
  CHECK_FALSE(life.says(initializing(0.7)));
}

TEST_CASE("B1178 versions: another state of a storage node is a new version") {
  Life life;
  life.start_up();
  life.node().set_wanted({NodeState::Retired, "", "", 0});
  CHECK(life.generate());
}

TEST_CASE("B1192 safe changes: without groups one storage node may be away at a time") {
  ClusterFacts facts = well();
  CHECK(why_not_stop(facts, {NodeId::storage(1)}).empty());
  CHECK_FALSE(why_not_stop(facts, {NodeId::storage(1), NodeId::storage(2)}).empty());
  const NodeState away = GENERATE(NodeState::Maintenance, NodeState::Down);
  node_of(facts, NodeId::storage(3)).state = away;
  const auto reasons = why_not_stop(facts, {NodeId::storage(1)});
  REQUIRE(reasons.size() == 1);
  CHECK(reasons[0].find("storage.3 is") == 0);
}

TEST_CASE("B1193 safe changes: with groups several nodes of one group may be away") {
  ClusterFacts facts = well("redundancy:2 (root (a 0 1) (b 2 3))");
  CHECK(why_not_stop(facts, {NodeId::storage(0), NodeId::storage(1)}).empty());
  CHECK_FALSE(why_not_stop(facts, {NodeId::storage(0), NodeId::storage(2)}).empty());
  node_of(facts, NodeId::storage(1)).state = NodeState::Maintenance;
  CHECK(why_not_stop(facts, {NodeId::storage(0)}).empty());
  CHECK_FALSE(why_not_stop(facts, {NodeId::storage(2)}).empty());
}

TEST_CASE("safe changes: how many groups may be out at once is a setting, and every bucket keeps a replica") {
  ClusterFacts facts = well("redundancy:3 (root (a 0 1) (b 2 3) (c 4 5))", 6);
  facts.groups_out_max = 2;
  CHECK(why_not_stop(facts, {NodeId::storage(0), NodeId::storage(2)}).empty());
  const auto all = why_not_stop(facts, {NodeId::storage(0), NodeId::storage(2), NodeId::storage(4)});
  REQUIRE_FALSE(all.empty());
  CHECK(all[0] == "the nodes are in 3 different groups, and controller.groups_out_max is 2");

  ClusterState state = *facts.active.state;
  state.set_node_state(NodeId::storage(0), NodeState::Maintenance);
  facts.active = ClusterView::make(state, *facts.active.distribution);
  node_of(facts, NodeId::storage(0)).state = NodeState::Maintenance;
  CHECK(why_not_stop(facts, {NodeId::storage(2)}).empty());
  CHECK(why_not_stop(facts, {NodeId::storage(2), NodeId::storage(1)}).empty());
  // With redundancy 2 some bucket has its other replica on the node in maintenance, which does not count as up.
  facts.active = ClusterView::make(state, facts.active.distribution->with_redundancy(2));
  CHECK(why_not_stop(facts, {NodeId::storage(2)}).size() == 1);
  facts.groups_out_max = 1;
  CHECK(why_not_stop(facts, {NodeId::storage(2)}).at(0) ==
        "storage.0 is maintenance already, and controller.groups_out_max is 1");
}

TEST_CASE("safe changes: a node may not be stopped if the cluster would be down without it") {
  ClusterFacts facts = well();
  facts.storage_up_ratio_min = 0.75;
  CHECK(why_not_stop(facts, {NodeId::storage(1)}).empty());
  facts.storage_up_ratio_min = 0.8;
  CHECK(why_not_stop(facts, {NodeId::storage(1)}).at(0) ==
        "the cluster would be down: 3 of 4 storage nodes would be up, and controller.storage_up_ratio_min is 0.80");
  node_of(facts, NodeId::storage(1)).buckets = 0;
  CHECK(why_not_stop(facts, {NodeId::storage(1)}).size() == 1);
  facts.distributors_up_ratio_min = 0.6;
  CHECK(why_not_stop(facts, {NodeId::distributor(0)}).size() == 1);
}

TEST_CASE("B1196 safe changes: a node may be stopped when all its buckets are in sync elsewhere") {
  ClusterFacts facts = well();
  for (std::uint16_t i = 0; i < 4; ++i) CHECK(why_not_stop(facts, {NodeId::storage(i)}).empty());
  CHECK(why_not_stop(facts, {NodeId::distributor(0)}).empty());
  CHECK_FALSE(why_not_stop(facts, {NodeId::distributor(0), NodeId::distributor(1)}).empty());
}

TEST_CASE("B1197 safe changes: a node may not be stopped when a bucket would be without a replica") {
  ClusterFacts facts = well();
  NodeFacts& distributor = node_of(facts, NodeId::distributor(1));
  SECTION("not in sync") { distributor.buckets_out_of_sync = 1; }
  SECTION("unavailable") { distributor.buckets_unavailable = 1; }
  SECTION("damaged") { distributor.buckets_damaged = 1; }
  SECTION("nobody knows") { distributor.is_fresh = false; }
  SECTION("known of an older state") { distributor.state_version = 8; }
  SECTION("a new state is on its way") { facts.is_changing = true; }
  SECTION("one copy of everything") {
    facts.active.distribution =
        std::make_shared<const DistributionConfig>(facts.active.distribution->with_redundancy(1));
  }
  CHECK(why_not_stop(facts, {NodeId::storage(1)}).size() == 1);
  node_of(facts, NodeId::storage(1)).buckets = 0;
  CHECK(why_not_stop(facts, {NodeId::storage(1)}).empty());  // Now the node holds no bucket.
}

TEST_CASE("B1200 B1201 B1202 safe changes: only a node that is retired and says that it is empty now leaves for good") {
  ClusterFacts facts = well();
  NodeFacts& node = node_of(facts, kNode);
  CHECK(why_not_remove(facts, {kNode}).size() == 1);
  node.wanted.state = NodeState::Retired;
  CHECK(why_not_remove(facts, {kNode}).at(0).ends_with("10 buckets"));
  node.state = NodeState::Retired;
  node_of(facts, NodeId::storage(0)).state = NodeState::Down;
  node_of(facts, NodeId::storage(2)).state = NodeState::Maintenance;
  CHECK(why_not_remove(facts, {kNode}).at(0).ends_with("while these are away: storage.0, storage.2"));
  node.buckets = 0;
  CHECK(why_not_remove(facts, {kNode}).empty());
  node.state_version = 8;
  CHECK(why_not_remove(facts, {kNode}).size() == 1);
  node.state_version = 9;
  node.is_fresh = false;
  CHECK(why_not_remove(facts, {kNode}).size() == 1);
}

TEST_CASE("safe changes: a node that is gone is given up only if every bucket is served without it") {
  ClusterFacts facts = well();
  node_of(facts, kNode).state = NodeState::Down;
  node_of(facts, NodeId::distributor(0)).buckets_out_of_sync = 3;
  CHECK(why_not_forget(facts).empty());
  node_of(facts, NodeId::distributor(0)).buckets_unavailable = 1;
  CHECK(why_not_forget(facts).size() == 1);
  node_of(facts, NodeId::distributor(0)).buckets_unavailable = 0;
  node_of(facts, NodeId::distributor(0)).buckets_collecting = 1;
  CHECK(why_not_forget(facts).size() == 1);
  node_of(facts, NodeId::distributor(0)).buckets_collecting = 0;
  node_of(facts, NodeId::distributor(1)).state_version = 8;
  CHECK(why_not_forget(facts).size() == 1);
}

TEST_CASE("node changes: a dry run and a refusal change nothing, force does, and all of it is in the history") {
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  const ClusterRecord before = record;
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Retire;
  request.nodes = {"storage.1"};
  request.reason = "old";
  request.dry_run = true;
  rpc::ChangeNodesReply reply = change_nodes(record, facts, request, 5);
  CHECK(reply.status);
  CHECK(reply.refusals.empty());
  CHECK(reply.plan.buckets_total == 64);
  CHECK(reply.plan.replicas_moved > 16);  // About a quarter of the 128 replicas moves.
  CHECK(reply.plan.replicas_moved < 64);
  CHECK(reply.plan.bytes == 4000 * reply.plan.replicas_moved / 128);
  CHECK(record == before);

  for (NodeFacts& node : facts.nodes) node.bytes = node.id.type == NodeType::Storage ? std::uint64_t{1} << 30 : 0;
  const auto seconds_with = [&](const std::map<std::string, std::string>& values) {
    ClusterRecord other = record;
    other.configs.push_back({.version = 1, .unix_us = 0, .who = {}, .values = values});
    return change_nodes(other, facts, request, 5).plan.duration_s;
  };
  const std::uint64_t default_s = change_nodes(record, facts, request, 5).plan.duration_s;  // The rate is 16 MiB/s.
  CHECK(default_s >= 20);
  for (const char* name : {"maintenance.bytes_per_s", "maintenance.moves_bytes_per_s"}) {
    const std::uint64_t slow_s = seconds_with({{name, std::to_string(4 << 20)}});
    CHECK(slow_s >= 4 * (default_s - 1));
    CHECK(slow_s <= 4 * default_s);
  }
  CHECK(seconds_with({{"maintenance.moves_bytes_per_s", std::to_string(64 << 20)}}) <= default_s / 4 + 1);

  request.dry_run = false;
  request.nodes = {"storage.1", "storage.2", "storage.3"};
  reply = change_nodes(record, facts, request, 5);
  CHECK(reply.refusals.size() == 1);
  CHECK(record == before);
  request.force = true;
  reply = change_nodes(record, facts, request, 5);
  CHECK(reply.refusals.empty());
  CHECK(reply.warnings.size() == 1);
  CHECK(record.wanted.size() == 3);
  CHECK(record.history.back().why == "old");
  request.nodes = {"storage.9"};
  CHECK(change_nodes(record, facts, request, 5).status.code() == StatusCode::NotFound);
  CHECK(parse_cluster_record(encode(record)).value() == record);
}

TEST_CASE("node changes: a change that the cluster state has already is made with a warning") {
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Retire;
  request.nodes = {kNode.to_string()};
  CHECK(change_nodes(record, facts, request, 5).warnings.empty());
  CHECK(change_nodes(record, facts, request, 5).warnings.empty());  // Retirement was ordered, but is not in force yet.
  ClusterState state = *facts.active.state;
  state.set_node_state(kNode, NodeState::Retired);
  facts.active = ClusterView::make(state, *facts.active.distribution);
  node_of(facts, kNode).state = NodeState::Retired;
  const rpc::ChangeNodesReply reply = change_nodes(record, facts, request, 5);
  CHECK(reply.refusals.empty());
  CHECK(reply.warnings == std::vector<std::string>{kNode.to_string() + " is retired already"});
}

TEST_CASE("node changes: so many nodes keep data as there are replicas, also by orders that are not in force yet") {
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  const auto refused = [&](rpc::NodeAction action, std::uint16_t node) {
    request.action = action;
    request.nodes = {NodeId::storage(node).to_string()};
    const rpc::ChangeNodesReply reply = change_nodes(record, facts, request, 5);
    CHECK(reply.status);
    return !reply.refusals.empty();
  };
  const auto last = GENERATE(rpc::NodeAction::Retire, rpc::NodeAction::Capacity);
  request.capacity = "0";
  CHECK_FALSE(refused(rpc::NodeAction::Retire, 1));
  CHECK_FALSE(refused(last, 2));
  CHECK(refused(rpc::NodeAction::Retire, 3));
  CHECK(refused(rpc::NodeAction::Capacity, 0));
  request.capacity = "0.5";
  CHECK_FALSE(refused(rpc::NodeAction::Capacity, 0));

  node_of(facts, NodeId::storage(1)).state = NodeState::Retired;
  CHECK(refused(rpc::NodeAction::Retire, 3));
  CHECK_FALSE(refused(rpc::NodeAction::Up, 1));
  CHECK_FALSE(refused(rpc::NodeAction::Retire, 3));
}

TEST_CASE("node changes: an order may be given again, however few nodes are left meanwhile") {
  const auto order = GENERATE(rpc::NodeAction::Retire, rpc::NodeAction::Capacity);
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  ClusterFacts facts = well();
  rpc::ChangeNodes request;
  request.action = order;
  request.capacity = "0";
  const auto is_refused = [&](const std::string& node) {
    request.nodes = {node};
    return !change_nodes(record, facts, request, 5).refusals.empty();
  };
  CHECK_FALSE(is_refused("storage.1"));
  ClusterState state = *facts.active.state;
  for (const std::uint16_t away : {std::uint16_t{2}, std::uint16_t{3}}) {
    state.set_node_state(NodeId::storage(away), NodeState::Down);
    node_of(facts, NodeId::storage(away)).state = NodeState::Down;
  }
  facts.active = ClusterView::make(std::move(state), *facts.active.distribution);
  CHECK(is_refused("storage.0"));
  CHECK_FALSE(is_refused("storage.1"));
}

TEST_CASE("publication: a pending state waits for all who may serve, but not for those whose lease is over") {
  const ClusterState active = *ClusterState::parse("version:4 distributor:2 storage:2 .1.s:d");
  const ClusterState pending = *ClusterState::parse("version:5 distributor:2 .1.s:d storage:2");
  const MonotonicTime now{100'000'000};
  const PublicationLimits limits{seconds(1), seconds(20)};
  std::vector<NodeProgress> nodes = {{NodeId::distributor(0), 5, now},
                                     {NodeId::distributor(1), 5, now},
                                     {NodeId::storage(0), 5, now},
                                     {NodeId::storage(1), 0, now}};
  const auto why = [&](Duration pending_for = Duration(0)) {
    return why_not_yet(active, pending, nodes, now - pending_for, limits, now);
  };
  CHECK(why().empty());  // There is nothing to wait for: storage.1 was not up before.
  nodes[0].prepared_version = 4;
  CHECK(why() == "waits for distributor.0");
  CHECK(why(seconds(60)) == "waits for distributor.0");  // The process answers and still serves under the old state.
  nodes[0].last_heard = now - seconds(1);
  CHECK_FALSE(why().empty());
  nodes[0].last_heard = now - milliseconds(1001);
  CHECK(why().empty());
  nodes[1].prepared_version = 4;
  CHECK(why() == "waits for distributor.1");
  CHECK(why(seconds(21)).empty());  // The pending state takes distributor.1 down.
}

TEST_CASE("stop check: replicas are assured when all storage nodes are there and all buckets in sync") {
  ClusterFacts facts = well();
  CHECK(why_not_in_sync(facts).empty());
  node_of(facts, NodeId::storage(1)).state = NodeState::Down;
  CHECK(why_not_in_sync(facts).size() == 1);
  node_of(facts, NodeId::storage(1)).state = NodeState::Up;
  node_of(facts, NodeId::storage(2)).is_fresh = false;
  CHECK(why_not_in_sync(facts).size() == 1);
  node_of(facts, NodeId::storage(2)).is_fresh = true;
  node_of(facts, NodeId::distributor(0)).buckets_unavailable = 1;
  CHECK(why_not_in_sync(facts).size() == 1);
  node_of(facts, NodeId::distributor(0)).buckets_unavailable = 0;
  facts.is_changing = true;
  CHECK(why_not_in_sync(facts).size() == 1);
}

TEST_CASE("node changes: maintenance moves nothing, whatever state the node was in") {
  const NodeState before = GENERATE(NodeState::Up, NodeState::Retired, NodeState::Down, NodeState::Maintenance);
  const bool answers = GENERATE(true, false);
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  ClusterFacts facts = well();
  ClusterState state = *facts.active.state;
  state.set_node_state(kNode, before);
  facts.active = ClusterView::make(state, *facts.active.distribution);
  node_of(facts, kNode).state = before;
  node_of(facts, kNode).is_fresh = answers;
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Maintenance;
  request.nodes = {kNode.to_string()};
  request.force = true;
  request.dry_run = true;
  const rpc::ChangeNodesReply reply = change_nodes(record, facts, request, 5);
  REQUIRE(reply.status);
  CHECK(reply.plan.buckets_total == 64);
  CHECK(reply.plan.buckets_moved == 0);
  CHECK(reply.plan.replicas_moved == 0);
  CHECK(reply.plan.bytes == 0);
  CHECK(reply.plan.duration_s == 0);
}

TEST_CASE("node changes: taking a node back in moves its replicas only if its process answers") {
  const bool answers = GENERATE(true, false);
  ClusterRecord record;
  record.nodes = {"redundancy:2 (root 0-3)", {"d0:1", "d1:1"}, {"s0:1", "s1:1", "s2:1", "s3:1"}, 6};
  record.wanted[kNode.to_string()] = {NodeState::Down, "disk", "ann", 1};
  ClusterFacts facts = well();
  ClusterState state = *facts.active.state;
  state.set_node_state(kNode, NodeState::Down);
  facts.active = ClusterView::make(state, *facts.active.distribution);
  node_of(facts, kNode).state = NodeState::Down;
  node_of(facts, kNode).is_fresh = answers;
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Up;
  request.nodes = {kNode.to_string()};
  const rpc::ChangeNodesReply reply = change_nodes(record, facts, request, 5);
  REQUIRE(reply.status);
  CHECK((reply.plan.replicas_moved > 16) == answers);
  if (!answers) CHECK(reply.plan.replicas_moved == 0);
}

}  // namespace fjord::fleetcontroller
