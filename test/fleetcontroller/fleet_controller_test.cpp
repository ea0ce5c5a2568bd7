#include "fjord/fleetcontroller/fleet_controller.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"
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
    auto* poll = std::get_if<rpc::Poll>(&request);
    if (poll == nullptr) return false;
    rpc::PollReply reply;
    Result<bool> updated = snapshots.update(poll->info);
    if (!updated) reply.status = updated.error();
    if (auto snapshot = snapshots.get()) {
      reply.state_version = snapshot->state_version();
      reply.schema_version = snapshot->schema_version();
    }
    reply.node_state = node_state;
    reply.incarnation = incarnation_;
    ++polls;
    respond(std::move(reply));
    return true;
  }
  std::uint64_t version() const { return snapshots.get() == nullptr ? 0 : snapshots.get()->state_version(); }
  std::uint64_t schema_version() const { return snapshots.get() == nullptr ? 0 : snapshots.get()->schema_version(); }

  rpc::SnapshotHolder snapshots;
  std::string node_state = "s:u";
  int polls = 0;

 private:
  std::uint64_t incarnation_;
};

/// A controller, three storage nodes and a distributor.
class Fleet {
 public:
  Fleet() {
    options.distributors = {"distributor.0:1"};
    options.storage = {"storage.0:1", "storage.1:1", "storage.2:1"};
    options.distribution = DistributionConfig::flat(3, 2).to_string();
    options.distribution_bits = 4;
    options.directory = "/controller";
  }

  Status start_controller() {
    controller_.reset();
    controller_ = std::make_unique<test::TestProcess<FleetController>>(world, "controller", env, 1);
    auto opened = FleetController::open(options, controller_->runtime(), controller_->transport());
    if (!opened) return opened.error();
    controller_->run(std::move(*opened));
    return Status::ok();
  }
  void stop_controller() { controller_.reset(); }
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
  FleetControllerOptions options;

 private:
  sim::SimEnv node_env_;
  std::unique_ptr<test::TestProcess<FleetController>> controller_;
  std::map<std::string, std::unique_ptr<test::TestProcess<PolledNode>>> nodes_;
  std::uint64_t incarnations_ = 10;
};

}  // namespace

TEST_CASE("fleet controller: one first version when everybody has answered, and everybody gets it") {
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

TEST_CASE("fleet controller: without one node the first version comes when the grace is over") {
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

TEST_CASE("fleet controller: a node that restarts between two polls gets a new version all the same") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_node("storage.1");
  fleet.start_node("storage.1");
  REQUIRE(fleet.run_until_all_know(2, seconds(3)));
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

TEST_CASE("fleet controller: versions and schemas survive its restart, and nothing is published without need") {
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
  fleet.start_all();
  fleet.stop_controller();
  fleet.start_node("storage.1");
  fleet.world.network.isolate("storage.0");
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(milliseconds(500));
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

TEST_CASE("fleet controller: a state that cannot be stored is not published") {
  Fleet fleet;
  fleet.start_all();
  fleet.env.inject({.path_prefix = "/controller", .operations = sim::FileOperation::Sync, .count = 1'000'000});
  fleet.stop_node("storage.1");
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.state().version() == 1);
  CHECK(fleet.node("storage.0").version() == 1);
  CHECK_FALSE(fleet.deploy({"document song { field title type string { } }"}).status);
  CHECK(fleet.node("storage.0").schema_version() == 0);
  fleet.env.clear_faults();
  REQUIRE(fleet.run_until_all_know(2, seconds(1)));
}

TEST_CASE("fleet controller: does not start on a damaged file or an impossible distribution") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_controller();
  REQUIRE(fleet.env.flip_bit("/controller/fleetcontroller.state", 30, 2));
  CHECK(fleet.start_controller().code() == StatusCode::Corruption);
  REQUIRE(fleet.env.flip_bit("/controller/fleetcontroller.state", 30, 2));
  fleet.options.distribution = DistributionConfig::flat(4, 2).to_string();  // There is no storage.3.
  CHECK(fleet.start_controller().code() == StatusCode::InvalidArgument);
}

}  // namespace fjord::fleetcontroller
