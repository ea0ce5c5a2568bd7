#include "fjord/fleetcontroller/fleet_controller.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <string>

#include "faulty_store.h"
#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
#include "fjord/fleetcontroller/memory_state_store.h"
#include "fjord/rpc/cluster_snapshot.h"
#include "storage/node/test_process.h"

namespace fjord::fleetcontroller {
namespace {

constexpr const char* kController = "controller:1";

/// A node as the controller sees it: takes the states in that it is told.
class PolledNode final : public rpc::Service {
 public:
  explicit PolledNode(std::uint64_t incarnation) : incarnation_(incarnation) {}

  bool handle(rpc::Request& request, rpc::Responder& respond) override {
    if (auto* question = std::get_if<rpc::GetBucketInfo>(&request)) {
      rpc::GetBucketInfoReply sizes;
      if (!question->census) sizes.status = {StatusCode::InvalidArgument, "only the controller asks in these tests"};
      sizes.reports = held;
      respond(std::move(sizes));
      return true;
    }
    auto* poll = std::get_if<rpc::Poll>(&request);
    if (poll == nullptr) return false;
    rpc::PollReply reply;
    Result<bool> updated = snapshots.update(poll->info);
    if (!updated) reply.status = updated.error();
    if (auto snapshot = snapshots.get()) {
      reply.state_version = snapshot->state_version();
      reply.schema_version = snapshot->schema_version();
      reply.term = snapshot->term();
      reply.config_version = snapshot->config_version();
      if (acknowledges) reply.pending_version = snapshot->pending_version();
    }
    heard_ahead = heard_ahead || (poll->heard_incarnation == incarnation_ && poll->heard_us > clock_us);
    reply.clock_us = ++clock_us;
    renewed = poll->renews_lease && poll->heard_incarnation == incarnation_ && poll->heard_us > 0;
    reply.buckets = buckets;
    reply.buckets_out_of_sync = out_of_sync;
    reply.node_state = node_state;
    reply.incarnation = incarnation_;
    reply.latencies = latencies;
    slow_storage = poll->slow_storage;
    ++polls;
    if (poll->heard_incarnation != incarnation_) ++polls_of_strangers;
    respond(std::move(reply));
    return true;
  }
  std::uint64_t version() const { return snapshots.get() == nullptr ? 0 : snapshots.get()->state_version(); }
  std::uint64_t schema_version() const { return snapshots.get() == nullptr ? 0 : snapshots.get()->schema_version(); }

  rpc::SnapshotHolder snapshots;
  std::string node_state = "s:u";
  bool acknowledges = true;
  bool renewed = false;      ///< By the last poll.
  bool heard_ahead = false;  ///< A clock came back that it has never said: of an earlier process.
  std::int64_t clock_us = 0;
  std::uint64_t buckets = 1;
  std::uint64_t out_of_sync = 0;
  std::vector<rpc::NodeLatency> latencies;
  std::vector<std::uint16_t> slow_storage;  ///< Of the last poll.
  std::vector<rpc::BucketReport> held;
  int polls = 0;
  int polls_of_strangers = 0;  ///< Of a controller that takes it for another process.

 private:
  std::uint64_t incarnation_;
};

rpc::ChangeNodes change(rpc::NodeAction action, const std::string& node) {
  rpc::ChangeNodes request;
  request.action = action;
  request.nodes = {node};
  return request;
}
rpc::ChangeConfig set(std::vector<std::string> settings) {
  rpc::ChangeConfig request;
  request.set = std::move(settings);
  return request;
}

/// A controller, three storage nodes and a distributor.
class Fleet {
 public:
  explicit Fleet(Duration session = seconds(2)) : ensemble(world.scheduler.clock(), {.session_timeout = session}) {
    options.distributors = {"distributor.0:1"};
    options.storage = {"storage.0:1", "storage.1:1", "storage.2:1"};
    options.distribution = DistributionConfig::flat(3, 2).to_string();
    options.distribution_bits = 4;
    options.name = kController;
  }

  Status start_controller() {
    stop_controller();
    controller_ = std::make_unique<test::TestProcess<FleetController>>(world, "controller", env, 1);
    store_ = std::make_unique<FaultyStore>(ensemble, store_faults);
    auto opened = FleetController::open(options, controller_->runtime(), controller_->transport(), *store_);
    if (!opened) return opened.error();
    controller_->run(std::move(*opened));
    return Status::ok();
  }
  sim::SimNodeScheduler& controller_scheduler() { return controller_->scheduler(); }
  void stop_controller() {
    controller_.reset();
    store_.reset();
  }
  void start_node(const std::string& name) {
    nodes_.erase(name);
    auto process = std::make_unique<test::TestProcess<PolledNode>>(world, name, node_env_, 1);
    process->run(std::make_unique<PolledNode>(++incarnations_));
    nodes_[name] = std::move(process);
  }
  void stop_node(const std::string& name) { nodes_.erase(name); }
  PolledNode& node(const std::string& name) { return nodes_.at(name)->node(); }
  void start_all() {
    for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) start_node(name);
    REQUIRE(start_controller());
    REQUIRE(run_until_all_know(1, seconds(5)));
  }

  bool run_until_all_know(std::uint64_t version, Duration limit) {
    return world.scheduler.run_until(
        [&] {
          return std::all_of(nodes_.begin(), nodes_.end(),
                             [&](const auto& entry) { return entry.second->node().version() >= version; });
        },
        limit);
  }
  ClusterState state() {
    rpc::GetClusterInfoReply reply = caller.ask(kController, rpc::GetClusterInfo{});
    REQUIRE(reply.status);
    Result<ClusterState> parsed = ClusterState::parse(reply.info.state);
    REQUIRE(parsed);
    CHECK(parsed->version() == reply.info.state_version);
    return *parsed;
  }
  rpc::DeploySchemasReply deploy(std::vector<std::string> schemas) {
    return caller.ask(kController, rpc::DeploySchemas{.schemas = std::move(schemas)});
  }

  test::TestNetwork world{7};
  test::TestCaller caller{world};
  sim::SimEnv env;
  MemoryStateEnsemble ensemble;
  FaultyStore::Faults store_faults;
  FleetControllerOptions options;

 private:
  sim::SimEnv node_env_;
  std::unique_ptr<FaultyStore> store_;
  std::unique_ptr<test::TestProcess<FleetController>> controller_;
  std::map<std::string, std::unique_ptr<test::TestProcess<PolledNode>>> nodes_;
  std::uint64_t incarnations_ = 10;
};

}  // namespace

TEST_CASE("B1154 fleet controller: one first version when everybody has answered, and everybody gets it") {
  Fleet fleet;
  fleet.start_all();
  ClusterState state = fleet.state();
  CHECK(state.version() == 1);
  CHECK(state.bits() == 4);
  for (std::uint16_t i = 0; i < 3; ++i) CHECK(state.is_up(NodeId::storage(i)));
  CHECK(state.is_up(NodeId::distributor(0)));
  fleet.world.scheduler.run_for(seconds(10));
  CHECK(fleet.state() == state);

  auto snapshot = fleet.node("storage.1").snapshots.get();
  CHECK(snapshot->info().storage_addresses == fleet.options.storage);
  CHECK(snapshot->info().distributor_addresses == fleet.options.distributors);
  CHECK(snapshot->distribution() == DistributionConfig::flat(3, 2));
}

TEST_CASE("B1153 fleet controller: without one node the first version comes when the grace is over") {
  Fleet fleet;
  for (const char* name : {"storage.0", "storage.2", "distributor.0"}) fleet.start_node(name);
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(milliseconds(2300));
  CHECK(fleet.state().version() == 0);
  fleet.world.scheduler.run_for(milliseconds(700));
  CHECK(fleet.state().version() == 1);
  CHECK_FALSE(fleet.state().is_up(NodeId::storage(1)));
}

TEST_CASE("fleet controller: a node that died is down in everybody's state within three seconds") {
  const std::string victim = GENERATE(as<std::string>(), "storage.1", "distributor.0");
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(milliseconds(1234));
  fleet.stop_node(victim);
  REQUIRE(fleet.run_until_all_know(2, seconds(3)));
  CHECK_FALSE(fleet.state().is_up(*NodeId::parse(victim)));

  fleet.start_node(victim);
  REQUIRE(fleet.run_until_all_know(3, seconds(3)));
  CHECK(fleet.state().is_up(*NodeId::parse(victim)));
  CHECK(fleet.state().node(*NodeId::parse(victim)).up_since_version == 3);
}

namespace {

/// How long after its end a process is down in everybody's state.
Duration time_to_notice(Fleet& fleet, const std::string& victim, double refuse) {
  sim::NetworkFaults faults;
  faults.refuse = refuse;
  fleet.world.network.set_faults(faults);
  fleet.start_all();
  fleet.world.scheduler.run_for(milliseconds(1234));
  fleet.stop_node(victim);
  const MonotonicTime ended = fleet.world.scheduler.clock().now();
  REQUIRE(fleet.run_until_all_know(2, seconds(4)));
  CHECK_FALSE(fleet.state().is_up(*NodeId::parse(victim)));
  CHECK(fleet.state().version() == 2);
  return fleet.world.scheduler.clock().now() - ended;
}

}  // namespace

TEST_CASE("fleet controller: a storage node whose machine refuses connections is down soon; after silence it is not") {
  for (double refuse : {1.0, 0.0}) {
    INFO(refuse);
    Fleet fleet;
    const Duration took = time_to_notice(fleet, "storage.1", refuse);
    CHECK(took > (refuse == 1 ? milliseconds(400) : milliseconds(1450)));
    CHECK(took < (refuse == 1 ? milliseconds(750) : milliseconds(2150)));
  }
}

TEST_CASE("fleet controller: a distributor that refuses connections keeps its buckets until its lease is over") {
  Fleet fleet;
  fleet.options.distributors.push_back("distributor.1:1");
  fleet.start_node("distributor.1");
  const Duration took = time_to_notice(fleet, "distributor.1", 1);
  CHECK(took > milliseconds(1150));  // 1.5 s after its last answer, which was up to 0.3 s before its end.
  CHECK(took < milliseconds(1550));
}

TEST_CASE("fleet controller: how soon a refusing node is down is a live setting, which may be switched off") {
  Fleet fleet;
  fleet.options.refused_after = milliseconds(50);
  CHECK(time_to_notice(fleet, "storage.1", 1) < milliseconds(500));
  fleet.start_node("storage.1");
  REQUIRE(fleet.run_until_all_know(3, seconds(3)));
  REQUIRE(fleet.caller.ask(kController, set({"controller.refused_after=0ms"})).status);
  fleet.stop_node("storage.1");
  fleet.world.scheduler.run_for(milliseconds(1400));
  CHECK(fleet.state().version() == 3);
  REQUIRE(fleet.run_until_all_know(4, seconds(2)));
}

TEST_CASE("fleet controller: a process that is back within refused_after is not called down") {
  Fleet fleet;
  sim::NetworkFaults faults;
  faults.refuse = 1;
  fleet.world.network.set_faults(faults);
  fleet.start_all();
  for (int i = 0; i < 20; ++i) {
    fleet.world.scheduler.run_for(milliseconds(1500 + 37 * i));
    fleet.stop_node("storage.1");
    fleet.world.scheduler.run_for(milliseconds(350));
    fleet.start_node("storage.1");
    fleet.world.scheduler.run_for(milliseconds(700));
  }
  // One version for each restart, and none in which it is away.
  CHECK(fleet.state().version() <= 21);
  for (const rpc::StateChange& entry : fleet.caller.ask(kController, rpc::GetHistory{}).changes) {
    INFO(entry.what << ": " << entry.why);
    CHECK(entry.why.find("refuses") == std::string::npos);
  }
}

TEST_CASE("fleet controller: a process that stands still, and takes connections, is silent and not gone") {
  Fleet fleet;
  sim::NetworkFaults faults;
  faults.refuse = 1;
  fleet.world.network.set_faults(faults);
  fleet.start_all();
  fleet.world.network.pause("storage.1");
  fleet.world.scheduler.run_for(milliseconds(1400));
  CHECK(fleet.state().version() == 1);
  fleet.world.network.resume("storage.1");
  fleet.world.scheduler.run_for(seconds(3));
  CHECK(fleet.state().version() == 1);
}

TEST_CASE("fleet controller: a node that restarts between two polls gets a new version all the same") {
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(3));
  fleet.stop_node("storage.1");
  fleet.start_node("storage.1");
  REQUIRE(fleet.run_until_all_know(2, seconds(3)));
  fleet.world.scheduler.run_for(seconds(1));
  CHECK_FALSE(fleet.node("storage.1").heard_ahead);
  CHECK(fleet.state().node(NodeId::storage(1)).up_since_version == 2);
  CHECK(fleet.state().node(NodeId::storage(0)).up_since_version == 1);
}

TEST_CASE("fleet controller: a node that cannot be reached is down, and gets the newest state when it can") {
  Fleet fleet;
  fleet.start_all();
  fleet.world.network.isolate("storage.2");
  fleet.world.scheduler.run_for(seconds(3));
  CHECK(fleet.state().version() == 2);
  CHECK(fleet.node("storage.0").version() == 2);
  CHECK(fleet.node("storage.2").version() == 1);
  fleet.world.network.heal();
  REQUIRE(fleet.run_until_all_know(3, seconds(3)));
  CHECK(fleet.state().node(NodeId::storage(2)).up_since_version == 3);
}

TEST_CASE("B1174 fleet controller: versions and schemas survive its restart, and nothing is published without need") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_node("storage.1");
  REQUIRE(fleet.run_until_all_know(2, seconds(3)));
  rpc::DeploySchemasReply deployed = fleet.deploy({"document song { field title type string { } }"});
  REQUIRE(deployed.status);
  CHECK(deployed.schema_version == 1);
  ClusterState before = fleet.state();

  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(10));
  CHECK(fleet.state() == before);
  rpc::GetClusterInfoReply reply = fleet.caller.ask(kController, rpc::GetClusterInfo{});
  CHECK(reply.info.schema_version == 1);
  CHECK(reply.info.schemas == std::vector<std::string>{"document song { field title type string { } }"});

  fleet.start_node("storage.1");
  REQUIRE(fleet.run_until_all_know(before.version() + 1, seconds(3)));
  CHECK(fleet.state().version() == before.version() + 1);
}

TEST_CASE(
    "fleet controller: a restarted controller sees who restarted or vanished meanwhile, and disturbs nobody else") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_controller();
  fleet.start_node("storage.1");
  fleet.stop_node("storage.2");
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(5));
  ClusterState state = fleet.state();
  CHECK(state.node(NodeId::storage(0)).up_since_version == 1);
  CHECK(state.node(NodeId::distributor(0)).up_since_version == 1);
  CHECK(state.node(NodeId::storage(1)).up_since_version > 1);
  CHECK_FALSE(state.is_up(NodeId::storage(2)));
  CHECK(fleet.node("storage.0").version() == state.version());
}

TEST_CASE(
    "fleet controller: a version that is published while a node has not answered yet says nothing new of that node") {
  Fleet fleet;
  fleet.options.start_grace = seconds(5);
  fleet.start_all();
  fleet.stop_controller();
  fleet.start_node("storage.1");
  fleet.world.network.isolate("storage.0");
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(milliseconds(1000));
  CHECK(fleet.state().version() == 1);  // storage.0 might still serve by it.
  fleet.world.scheduler.run_for(milliseconds(1200));
  REQUIRE(fleet.state().version() == 2);  // storage.1 restarted.
  CHECK(fleet.state().is_up(NodeId::storage(0)));
  fleet.world.network.heal();  // storage.0 was there all the time.
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.state().version() == 2);
  CHECK(fleet.state().node(NodeId::storage(0)).up_since_version == 1);
}

TEST_CASE("fleet controller: schemas are added or replaced by name, and bad ones change nothing") {
  Fleet fleet;
  fleet.start_all();
  const std::string song = "document song { field title type string { } }";
  const std::string song2 = "document song { field title type string { } field year type int { } }";
  const std::string album = "document album { field name type string { } }";
  CHECK(fleet.deploy({song}).schema_version == 1);
  CHECK(fleet.deploy({song}).schema_version == 1);  // Nothing new.
  CHECK(fleet.deploy({album}).schema_version == 2);
  CHECK(fleet.deploy({song2}).schema_version == 3);
  rpc::GetClusterInfoReply reply = fleet.caller.ask(kController, rpc::GetClusterInfo{});
  CHECK(reply.info.schemas == std::vector<std::string>{song2, album});

  CHECK(fleet.deploy({album, "no schema"}).status.code() == StatusCode::InvalidArgument);
  CHECK_FALSE(fleet.deploy({"document broken { field x type nonsense { } }"}).status);
  reply = fleet.caller.ask(kController, rpc::GetClusterInfo{});
  CHECK(reply.info.schema_version == 3);
  CHECK(reply.info.schemas == std::vector<std::string>{song2, album});

  REQUIRE(fleet.world.scheduler.run_until([&] { return fleet.node("storage.0").schema_version() == 3; }, seconds(1)));
  CHECK(fleet.node("storage.0").snapshots.get()->types()->find("album") != nullptr);
}

TEST_CASE("fleet controller: a schema under which stored documents could not be read is refused, and says which") {
  Fleet fleet;
  fleet.start_all();
  const std::string song = "document song { field title type string { } field year type int { } }";
  const std::string other_type = "document song { field title type int { } field year type int { } }";
  const std::string without_year = "document song { field title type string { } }";
  REQUIRE(fleet.deploy({song}).status);
  for (const std::string& bad : {other_type, without_year}) {
    rpc::DeploySchemasReply refused = fleet.deploy({bad});
    CHECK(refused.status.code() == StatusCode::InvalidArgument);
    CHECK(refused.status.message().find(bad == other_type ? "song.title" : "song.year") != std::string::npos);
  }
  CHECK(fleet.caller.ask(kController, rpc::GetClusterInfo{}).info.schemas == std::vector<std::string>{song});
  rpc::DeploySchemas drop{.schemas = {without_year}, .may_drop = {"song.year"}};
  CHECK(fleet.caller.ask(kController, drop).schema_version == 2);
}

TEST_CASE(
    "B1173 B1181 fleet controller: a state that cannot be stored is not published, and who cannot store does not "
    "lead") {
  Fleet fleet;
  fleet.options.refused_after = Duration(0);
  fleet.start_all();
  fleet.ensemble.disconnect(kController);
  fleet.stop_node("storage.1");
  fleet.world.scheduler.run_for(milliseconds(1900));
  CHECK(fleet.node("storage.0").version() == 1);
  CHECK_FALSE(fleet.node("storage.0").renewed);  // It could not make sure of its leadership any more.
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.node("storage.0").version() == 1);
  CHECK(fleet.deploy({"document song { field title type string { } }"}).status.code() == StatusCode::NotReady);
  CHECK(fleet.node("storage.0").schema_version() == 0);
  const int polls = fleet.node("storage.0").polls;
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.node("storage.0").polls == polls);  // Nobody polls who does not lead.
  fleet.ensemble.connect(kController);
  REQUIRE(fleet.run_until_all_know(2, seconds(6)));
  CHECK(fleet.node("storage.0").renewed);
}

TEST_CASE(
    "B1182 fleet controller: a new state is active when all who serve have acknowledged it, and pending until then") {
  Fleet fleet;
  fleet.options.refused_after = Duration(0);
  fleet.start_all();
  fleet.node("distributor.0").acknowledges = false;
  fleet.stop_node("storage.1");
  fleet.world.scheduler.run_for(seconds(10));
  CHECK(fleet.state().version() == 1);
  for (const char* name : {"storage.0", "distributor.0"}) {
    CHECK(fleet.node(name).version() == 1);
    CHECK(fleet.node(name).snapshots.get()->pending_version() == 2);
  }
  rpc::GetHistoryReply history = fleet.caller.ask(kController, rpc::GetHistory{});
  CHECK(history.waits_for.find("distributor.0") != std::string::npos);
  CHECK(history.changes.back().active_unix_us == 0);
  fleet.node("distributor.0").acknowledges = true;
  REQUIRE(fleet.run_until_all_know(2, seconds(1)));
  history = fleet.caller.ask(kController, rpc::GetHistory{});
  CHECK(history.waits_for.empty());
  REQUIRE(history.changes.size() == 2);
  CHECK(history.changes[1].version == 2);
  CHECK(history.changes[1].active_unix_us > 0);
  CHECK(history.changes[1].why.find("storage.1: no answer for") != std::string::npos);
}

TEST_CASE(
    "B1208 fleet controller: what an operator wants of nodes survives its restart, and unsafe wishes are refused") {
  Fleet fleet;
  fleet.start_all();
  rpc::ChangeNodes request = change(rpc::NodeAction::Maintenance, "storage.1");
  request.reason = "disk";
  request.who = "ann";
  fleet.node("distributor.0").out_of_sync = 7;
  fleet.world.scheduler.run_for(seconds(1));
  rpc::ChangeNodesReply reply = fleet.caller.ask(kController, request);
  REQUIRE(reply.status);
  REQUIRE(reply.refusals.size() == 1);
  CHECK(reply.refusals[0].find("7 buckets") != std::string::npos);
  CHECK(fleet.state().is_up(NodeId::storage(1)));

  fleet.node("distributor.0").out_of_sync = 0;
  fleet.world.scheduler.run_for(seconds(1));
  request.dry_run = true;
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
  fleet.world.scheduler.run_for(seconds(1));
  CHECK(fleet.state().is_up(NodeId::storage(1)));
  request.dry_run = false;
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
  REQUIRE(fleet.run_until_all_know(2, seconds(1)));
  CHECK(fleet.state().node(NodeId::storage(1)).state == NodeState::Maintenance);
  rpc::GetStatusReply status = fleet.caller.ask(kController, rpc::GetStatus{});
  CHECK(status.nodes[2].wanted == "maintenance: disk (ann)");

  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.state().node(NodeId::storage(1)).state == NodeState::Maintenance);
  request.action = rpc::NodeAction::Up;
  REQUIRE(fleet.caller.ask(kController, request).status);
  REQUIRE(fleet.run_until_all_know(3, seconds(1)));
  CHECK(fleet.state().is_up(NodeId::storage(1)));
}

TEST_CASE("fleet controller: a new leader takes a node for the process that the state speaks of") {
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(1));
  PolledNode& node = fleet.node("storage.1");
  const int strangers = node.polls_of_strangers;
  CHECK(strangers > 0);
  REQUIRE(fleet.start_controller());
  const int polls = node.polls;
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(node.polls > polls);
  CHECK(node.polls_of_strangers == strangers);
}

TEST_CASE("fleet controller: that it stood still itself is no reason to call nodes down") {
  Fleet fleet(seconds(600));  // As a store in the same process: the leadership does not end meanwhile.
  fleet.options.stable_period = seconds(600);
  fleet.start_all();
  for (int i = 0; i < 12; ++i) {
    fleet.world.scheduler.run_for(seconds(2));
    fleet.controller_scheduler().pause();
    fleet.world.scheduler.run_for(seconds(5));
    fleet.controller_scheduler().resume();
  }
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.state().version() == 1);

  // Who does not answer afterwards is still noticed.
  fleet.controller_scheduler().pause();
  fleet.world.scheduler.run_for(seconds(5));
  fleet.stop_node("storage.1");
  fleet.controller_scheduler().resume();
  REQUIRE(fleet.world.scheduler.run_until([&] { return !fleet.state().is_up(NodeId::storage(1)); }, seconds(4)));
}

TEST_CASE("fleet controller: single buckets are kept elsewhere so that all nodes are equally full, until that is off") {
  Fleet fleet;
  fleet.options.distribution_bits = 8;
  fleet.start_all();
  auto before = fleet.node("storage.0").snapshots.get();
  // Every bucket is where it belongs; the first of each node is large.
  std::map<std::uint16_t, std::uint64_t> bytes;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << before->distribution_bits(); ++i) {
    const BucketId bucket(before->distribution_bits(), i);
    for (std::uint16_t node : before->ideal_nodes(bucket)) {
      rpc::BucketReport report;
      report.info.bytes = 1000 + 10 * (i % 7);
      // Two halves count together.
      for (BucketId half : halves_of(bucket)) {
        report.bucket = half;
        fleet.node("storage." + std::to_string(node)).held.push_back(report);
      }
      bytes[node] += 2 * report.info.bytes;
    }
  }
  const auto excess = [](const std::map<std::uint16_t, std::uint64_t>& of) {
    std::uint64_t most = 0;
    std::uint64_t sum = 0;
    for (const auto& [node, held] : of) most = std::max(most, held), sum += held;
    return static_cast<double>(most) * static_cast<double>(of.size()) / static_cast<double>(sum);
  };
  const double uneven = excess(bytes);

  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Balance;
  request.balance_to = "1.005";
  request.dry_run = true;
  rpc::ChangeNodesReply reply = fleet.caller.ask(kController, request);
  REQUIRE(reply.status);
  CHECK(reply.plan.replicas_moved > 0);
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.state().exceptions().empty());

  request.dry_run = false;
  REQUIRE(fleet.caller.ask(kController, request).status);
  REQUIRE(fleet.world.scheduler.run_until([&] { return !fleet.state().exceptions().empty(); }, seconds(5)));
  REQUIRE(fleet.run_until_all_know(fleet.state().version(), seconds(2)));
  auto after = fleet.node("storage.0").snapshots.get();
  bytes.clear();
  for (std::uint64_t i = 0; i < std::uint64_t{1} << after->distribution_bits(); ++i) {
    for (std::uint16_t node : after->ideal_nodes(BucketId(after->distribution_bits(), i))) {
      bytes[node] += 2 * (1000 + 10 * (i % 7));
    }
  }
  CHECK(uneven > 1.005);
  CHECK(excess(bytes) <= 1.005);

  // A controller that starts again knows of them.
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(5));
  CHECK_FALSE(fleet.state().exceptions().empty());
  request.balance_to = "1.5x";
  CHECK(fleet.caller.ask(kController, request).status.code() == StatusCode::InvalidArgument);
  request.balance_to = "off";
  REQUIRE(fleet.caller.ask(kController, request).status);
  REQUIRE(fleet.world.scheduler.run_until([&] { return fleet.state().exceptions().empty(); }, seconds(5)));
}

TEST_CASE("fleet controller: nothing is balanced while a storage node does not tell what it holds") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_node("storage.1");
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Balance;
  const rpc::ChangeNodesReply reply = fleet.caller.ask(kController, request);
  CHECK(reply.status.code() == StatusCode::Unavailable);
  CHECK(reply.status.message().find("storage.1") != std::string::npos);
}

TEST_CASE("fleet controller: a storage node that is added gets an index, an address that all know, and buckets") {
  Fleet fleet;
  fleet.start_all();
  fleet.start_node("storage.3");
  rpc::ChangeNodes request = change(rpc::NodeAction::Add, "storage");
  request.address = "storage.3:1";
  request.capacity = "2";
  rpc::ChangeNodesReply reply = fleet.caller.ask(kController, request);
  REQUIRE(reply.status);
  CHECK(reply.nodes == std::vector<std::string>{"storage.3"});
  CHECK(reply.plan.buckets_moved > 0);
  CHECK(reply.plan.buckets_moved < reply.plan.buckets_total);
  REQUIRE(fleet.world.scheduler.run_until([&] { return fleet.state().is_up(NodeId::storage(3)); }, seconds(5)));
  REQUIRE(fleet.run_until_all_know(fleet.state().version(), seconds(2)));
  auto snapshot = fleet.node("storage.0").snapshots.get();
  CHECK(snapshot->info().storage_addresses.back() == "storage.3:1");
  CHECK(snapshot->distribution().to_string() == "redundancy:2 (root 0 1 2 3*2)");
  CHECK(fleet.caller.ask(kController, request).status.code() == StatusCode::AlreadyExists);

  request = change(rpc::NodeAction::Remove, "storage.3");
  CHECK(fleet.caller.ask(kController, request).refusals.size() == 1);  // Not retired.
  request.action = rpc::NodeAction::Retire;
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.state().node(NodeId::storage(3)).state == NodeState::Retired);
  request.action = rpc::NodeAction::Remove;
  CHECK(fleet.caller.ask(kController, request).refusals.size() == 1);  // Not empty.
  fleet.node("storage.3").buckets = 0;
  fleet.world.scheduler.run_for(seconds(1));
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.node("storage.0").snapshots.get()->distribution().to_string() == "redundancy:2 (root 0 1 2)");
  CHECK(fleet.caller.ask(kController, rpc::GetStatus{}).nodes.size() == 4);
}

TEST_CASE("fleet controller: settings are checked, reach every node, and can be taken back") {
  Fleet fleet;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(1));  // More copies are refused before all nodes have the state.
  rpc::ChangeConfigReply reply =
      fleet.caller.ask(kController, set({"cluster.redundancy=3", "storage.file_bytes_max=64MiB"}));
  REQUIRE(reply.status);
  CHECK(reply.config_version == 1);
  CHECK(reply.changes.size() == 2);
  REQUIRE(fleet.run_until_all_know(2, seconds(2)));
  auto snapshot = fleet.node("storage.0").snapshots.get();
  CHECK(snapshot->config_version() == 1);
  CHECK(snapshot->info().config == std::vector<std::string>{"cluster.redundancy=3", "storage.file_bytes_max=67108864"});
  CHECK(snapshot->distribution().redundancy() == 3);

  for (const char* bad : {"cluster.redundancy=0", "cluster.redundancy=many", "nonsense=1", "cluster.redundancy",
                          "storage.file_bytes_max=64"}) {
    reply = fleet.caller.ask(kController, set({"maintenance.paused=true", bad}));
    INFO(bad);
    CHECK(reply.status.code() == StatusCode::InvalidArgument);
  }
  rpc::GetConfigReply config = fleet.caller.ask(kController, rpc::GetConfig{});
  CHECK(config.config_version == 1);
  CHECK(config.waiting.empty());
  rpc::ChangeConfig revert;
  revert.revert = true;
  reply = fleet.caller.ask(kController, revert);
  CHECK(reply.config_version == 2);
  REQUIRE(fleet.run_until_all_know(3, seconds(2)));
  CHECK(fleet.node("storage.0").snapshots.get()->distribution().redundancy() == 2);
  CHECK(fleet.node("storage.0").snapshots.get()->info().config.empty());
}

TEST_CASE("fleet controller: does not start with an impossible distribution") {
  Fleet fleet;
  fleet.options.distribution = DistributionConfig::flat(4, 2).to_string();  // There is no storage.3.
  CHECK(fleet.start_controller().code() == StatusCode::InvalidArgument);
}

namespace {

/// Several controllers over one ensemble.
class Candidates {
 public:
  explicit Candidates(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) start(i);
  }
  ~Candidates() {
    for (std::size_t i = 0; i < controllers_.size(); ++i) kill(i);
  }
  std::string name(std::size_t i) const { return "controller" + std::to_string(i) + ":1"; }
  void start(std::size_t i) {
    if (controllers_.size() <= i) {
      controllers_.resize(i + 1);
      stores_.resize(i + 1);
    }
    fleet.ensemble.connect(name(i));
    FleetControllerOptions options = fleet.options;
    options.name = name(i);
    stores_[i] = std::make_unique<MemoryStateStore>(fleet.ensemble);
    controllers_[i] = std::make_unique<test::TestProcess<FleetController>>(
        fleet.world, "controller" + std::to_string(i), fleet.env, i + 1);
    auto opened = FleetController::open(options, controllers_[i]->runtime(), controllers_[i]->transport(), *stores_[i]);
    REQUIRE(opened);
    controllers_[i]->run(std::move(*opened));
  }
  /// Without a farewell to the store.
  void kill(std::size_t i) {
    fleet.ensemble.disconnect(name(i));
    controllers_[i].reset();
    stores_[i].reset();
  }
  std::size_t leader() const {
    std::size_t i = 0;
    while (name(i) != fleet.ensemble.leadership().leader) ++i;
    return i;
  }
  Status ask(std::size_t i) { return fleet.caller.ask(name(i), rpc::GetStatus{}).status; }

  Fleet fleet;

 private:
  std::vector<std::unique_ptr<MemoryStateStore>> stores_;
  std::vector<std::unique_ptr<test::TestProcess<FleetController>>> controllers_;
};

}  // namespace

TEST_CASE(
    "B1168 B1169 fleet controller: of several one leads, the others say who, and the next goes on with its versions") {
  const std::size_t count = GENERATE(2u, 5u);
  Candidates candidates(count);
  Fleet& fleet = candidates.fleet;
  for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) fleet.start_node(name);
  REQUIRE(fleet.run_until_all_know(1, seconds(5)));
  std::uint64_t version = 1;
  std::uint64_t term = fleet.node("storage.0").snapshots.get()->term();
  std::set<std::size_t> dead;
  while (dead.size() + 1 < count) {
    const std::size_t leader = candidates.leader();
    CHECK(candidates.ask(leader));
    for (std::size_t other = 0; other < count; ++other) {
      if (other == leader || dead.contains(other)) continue;
      const Status refused = candidates.ask(other);
      CHECK(refused.code() == StatusCode::NotReady);
      CHECK(refused.message().find(candidates.name(leader)) != std::string::npos);
    }
    candidates.kill(leader);
    dead.insert(leader);
    fleet.stop_node("storage.2");
    fleet.start_node("storage.2");
    REQUIRE(fleet.run_until_all_know(++version, seconds(10)));
    const auto snapshot = fleet.node("storage.0").snapshots.get();
    CHECK(snapshot->state_version() == version);
    CHECK(snapshot->state().node(NodeId::storage(0)).up_since_version == 1);
    CHECK(snapshot->term() > term);
    term = snapshot->term();
  }
}

TEST_CASE("B1170 B1172 fleet controller: one that is cut off from the store gives up before another one can lead") {
  Candidates candidates(2);
  Fleet& fleet = candidates.fleet;
  for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) fleet.start_node(name);
  REQUIRE(fleet.run_until_all_know(1, seconds(5)));
  const std::size_t old = candidates.leader();
  const std::size_t next = 1 - old;
  fleet.ensemble.disconnect(candidates.name(old));
  for (int i = 0; i < 100; ++i) {
    fleet.world.scheduler.run_for(milliseconds(50));
    const bool next_leads = candidates.ask(next).is_ok();
    const bool both = next_leads && candidates.ask(old).is_ok();
    REQUIRE_FALSE(both);
  }
  CHECK(candidates.ask(next));
  CHECK(fleet.node("storage.0").snapshots.get()->term() == 2);
  fleet.ensemble.connect(candidates.name(old));
  fleet.world.scheduler.run_for(seconds(3));
  CHECK(candidates.ask(old).code() == StatusCode::NotReady);
  CHECK(candidates.ask(next));
  CHECK(fleet.node("storage.0").version() == 1);  // Nothing happened to the nodes.
}

TEST_CASE("fleet controller: a leader renews no lease before the store has confirmed that it leads") {
  Fleet fleet;
  fleet.store_faults.confirms_are_lost = true;
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(1));
  CHECK_FALSE(fleet.node("distributor.0").renewed);
  fleet.store_faults.confirms_are_lost = false;
  CHECK(fleet.world.scheduler.run_until([&] { return fleet.node("distributor.0").renewed; }, seconds(5)));
}

TEST_CASE("fleet controller: a state that could not be stored is told to nobody") {
  Fleet fleet;
  fleet.start_all();
  fleet.store_faults.writes_fail = true;
  fleet.stop_node("storage.2");
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.node("storage.0").version() == 1);
  CHECK(fleet.node("storage.0").snapshots.get()->pending_version() <= 1);
  fleet.store_faults.writes_fail = false;
  CHECK(fleet.run_until_all_know(2, seconds(10)));
}

TEST_CASE("fleet controller: a session that ends does not let the old leader publish anything") {
  Candidates candidates(2);
  Fleet& fleet = candidates.fleet;
  for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) fleet.start_node(name);
  REQUIRE(fleet.run_until_all_know(1, seconds(5)));
  const std::size_t old = candidates.leader();
  fleet.ensemble.end_session(candidates.name(old));
  fleet.stop_node("storage.2");
  REQUIRE(fleet.run_until_all_know(2, seconds(10)));
  CHECK(candidates.ask(1 - old));
  CHECK(candidates.ask(old).code() == StatusCode::NotReady);
  const rpc::GetHistoryReply history = fleet.caller.ask(candidates.name(1 - old), rpc::GetHistory{});
  CHECK(history.changes.back().term == 2);
  CHECK(history.leader == candidates.name(1 - old));
}

TEST_CASE("fleet controller: a storage node that distributors find slow is marked, shown and unmarked, and stays up") {
  Fleet fleet;
  fleet.start_all();
  const auto slow_of = [&](const std::string& name) {
    const auto status = fleet.caller.ask(kController, rpc::GetStatus{});
    for (const rpc::NodeStatus& node : status.nodes) {
      if (node.node == name) return node.slow;
    }
    return std::string("no such node");
  };
  PolledNode& distributor = fleet.node("distributor.0");
  rpc::NodeLatency latency{1, 45'000, 0, 400, 0, false};
  distributor.latencies = {latency};
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(distributor.slow_storage.empty());
  CHECK(slow_of("storage.1").empty());

  distributor.latencies[0].suspect = true;
  REQUIRE(fleet.world.scheduler.run_until([&] { return !distributor.slow_storage.empty(); }, seconds(1)));
  CHECK(distributor.slow_storage == std::vector<std::uint16_t>{1});
  CHECK(slow_of("storage.1") == "reads take 45.0 ms (others 0.4 ms); 1 of 1 distributors");
  CHECK(slow_of("storage.0").empty());
  fleet.world.scheduler.run_for(seconds(1));
  const rpc::GetHistoryReply history = fleet.caller.ask(kController, rpc::GetHistory{});
  const auto about_storage_1 = [](const rpc::StateChange& change) { return change.what == "storage.1: slow"; };
  CHECK(std::count_if(history.changes.begin(), history.changes.end(), about_storage_1) == 1);
  CHECK(fleet.state().version() == 1);
  CHECK(fleet.state().is_up(NodeId::storage(1)));

  distributor.latencies[0].suspect = false;
  fleet.world.scheduler.run_for(seconds(2));
  CHECK_FALSE(distributor.slow_storage.empty());  // Not at the first good sign.
  REQUIRE(fleet.world.scheduler.run_until([&] { return distributor.slow_storage.empty(); }, seconds(5)));
  CHECK(slow_of("storage.1").empty());
}

}  // namespace fjord::fleetcontroller
