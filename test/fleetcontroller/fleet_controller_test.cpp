#include "fjord/fleetcontroller/fleet_controller.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "fleet_world.h"

namespace fjord::fleetcontroller {

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

/// Returns the time from the end of a process until it is down in the state of every node.
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
  CHECK(took > milliseconds(1150));  // The node is down 1.5 s after its last answer, up to 0.3 s before its end.
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
  // Each restart makes one version, and no version has the node down.
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
  CHECK(fleet.state().version() == 1);  // storage.0 may still serve under version 1, so there is no version 2 yet.
  fleet.world.scheduler.run_for(milliseconds(1200));
  REQUIRE(fleet.state().version() == 2);  // There is a new version because storage.1 has restarted.
  CHECK(fleet.state().is_up(NodeId::storage(0)));
  fleet.world.network.heal();  // storage.0 was running all the time, only cut off.
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.state().version() == 2);
  CHECK(fleet.state().node(NodeId::storage(0)).up_since_version == 1);
}

TEST_CASE("fleet controller: a state that replaces a pending one says that nobody ever acted in that") {
  Fleet fleet;
  fleet.start_all();
  fleet.node("distributor.0").acknowledges = false;
  CHECK(fleet.caller.ask(kController, change(rpc::NodeAction::Retire, "storage.0")).refusals.empty());
  fleet.world.scheduler.run_for(milliseconds(300));
  CHECK(fleet.caller.ask(kController, change(rpc::NodeAction::Up, "storage.0")).refusals.empty());
  fleet.world.scheduler.run_for(milliseconds(300));
  CHECK(fleet.state().version() == 1);
  fleet.node("distributor.0").acknowledges = true;
  REQUIRE(fleet.run_until_all_know(3, seconds(2)));
  CHECK(fleet.node("storage.0").snapshots.get()->state().follows() == 1);
  CHECK(fleet.caller.ask(kController, change(rpc::NodeAction::Retire, "storage.0")).refusals.empty());
  REQUIRE(fleet.run_until_all_know(4, seconds(2)));
  CHECK(fleet.node("storage.0").snapshots.get()->state().follows() == 3);
}

TEST_CASE("fleet controller: schemas are added or replaced by name, and bad ones change nothing") {
  Fleet fleet;
  fleet.start_all();
  const std::string song = "document song { field title type string { } }";
  const std::string song2 = "document song { field title type string { } field year type int { } }";
  const std::string album = "document album { field name type string { } }";
  CHECK(fleet.deploy({song}).schema_version == 1);
  CHECK(fleet.deploy({song}).schema_version == 1);  // An equal schema makes no new version.
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

TEST_CASE("fleet controller: a dropped field comes back with its type, or with another one if that is allowed") {
  Fleet fleet;
  fleet.start_all();
  const auto schema = [](const std::string& field) { return "document u { field b type string { } " + field + " }"; };
  const std::string integer = schema("field a type int { }");
  const std::string text = schema("field a type string { }");
  const std::string list = schema("field a type array<int> { }");
  const auto deploy = [&](const std::string& one, std::vector<std::string> may_drop = {}) {
    return fleet.caller.ask(kController, rpc::DeploySchemas{.schemas = {one}, .may_drop = std::move(may_drop)}).status;
  };
  REQUIRE(deploy(integer));
  REQUIRE(deploy(schema(""), {"u.a"}));
  REQUIRE(fleet.start_controller());  // It is remembered.
  fleet.world.scheduler.run_for(seconds(10));
  for (const std::string& other : {text, list}) {
    const Status refused = deploy(other);
    CHECK(refused.code() == StatusCode::InvalidArgument);
    CHECK(refused.message().find("u.a: it was dropped earlier") != std::string::npos);
  }
  CHECK(deploy(integer));
  REQUIRE(deploy(schema(""), {"u.a"}));
  CHECK(deploy(text, {"u.a"}));
  CHECK(deploy(schema("field a type string { } field c type int { }")));  // Not asked again.
  REQUIRE(deploy(schema("field c type int { }"), {"u.a"}));
  CHECK_FALSE(deploy(schema("field a type int { } field c type int { }")));  // It was a string at last.
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
  CHECK_FALSE(fleet.node("storage.0").renewed);  // The controller could not confirm its leadership.
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.node("storage.0").version() == 1);
  CHECK(fleet.deploy({"document song { field title type string { } }"}).status.code() == StatusCode::NotReady);
  CHECK(fleet.node("storage.0").schema_version() == 0);
  const int polls = fleet.node("storage.0").polls;
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.node("storage.0").polls == polls);  // A controller that does not lead polls no node.
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
  AnsweringNode& node = fleet.node("storage.1");
  const int strangers = node.polls_of_strangers;
  CHECK(strangers > 0);
  REQUIRE(fleet.start_controller());
  const int polls = node.polls;
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(node.polls > polls);
  CHECK(node.polls_of_strangers == strangers);
}

TEST_CASE("fleet controller: that it stood still itself is no reason to call nodes down") {
  Fleet fleet(seconds(600));  // The session outlives the pauses, as with a store in the same process.
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

  // The controller still notices a node that ends during such a pause.
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
  // Every bucket is on its ideal nodes; the first bucket of each node is large.
  std::map<std::uint16_t, std::uint64_t> bytes;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << before->distribution_bits(); ++i) {
    const BucketId bucket(before->distribution_bits(), i);
    for (std::uint16_t node : before->ideal_nodes(bucket)) {
      rpc::BucketReport report;
      report.info.bytes = 1000 + 10 * (i % 7);
      // Both halves together count as one bucket.
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

  // A restarted controller knows the exceptions.
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
  CHECK(fleet.caller.ask(kController, request).refusals.size() == 1);  // Refused, as the node is not retired yet.
  request.action = rpc::NodeAction::Retire;
  CHECK(fleet.caller.ask(kController, request).refusals.empty());
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.state().node(NodeId::storage(3)).state == NodeState::Retired);
  request.action = rpc::NodeAction::Remove;
  CHECK(fleet.caller.ask(kController, request).refusals.size() == 1);  // Refused, as the node is not empty yet.
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
  fleet.node("distributor.0").out_of_sync = 7;
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

  // Redundancy 3 is assured once all buckets have three replicas.
  fleet.world.scheduler.run_for(seconds(3));
  CHECK(fleet.state().replicas_assured() == 2);
  CHECK(fleet.state().version() == 2);
  fleet.node("distributor.0").out_of_sync = 0;
  REQUIRE(fleet.run_until_all_know(3, seconds(2)));
  CHECK(fleet.node("storage.0").snapshots.get()->state().replicas_assured() == 3);
  CHECK(fleet.caller.ask(kController, rpc::GetHistory{}).changes.back().why == "all buckets have 3 replicas in sync");

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
  REQUIRE(fleet.run_until_all_know(4, seconds(2)));
  CHECK(fleet.node("storage.0").snapshots.get()->distribution().redundancy() == 2);
  CHECK(fleet.node("storage.0").snapshots.get()->state().replicas_assured() == 2);
  CHECK(fleet.node("storage.0").snapshots.get()->info().config.empty());
}

TEST_CASE("fleet controller: a change of settings that says what it has seen is late if something else came") {
  Fleet fleet;
  fleet.start_all();
  rpc::ChangeConfig first = set({"maintenance.paused=true"});
  first.if_version = true;
  rpc::ChangeConfigReply reply = fleet.caller.ask(kController, first);
  REQUIRE(reply.status);
  CHECK(reply.config_version == 1);

  rpc::ChangeConfig second = set({});
  second.unset = {"maintenance.paused"};
  second.if_version = true;
  second.version = 1;
  REQUIRE(fleet.caller.ask(kController, second).status);
  for (const rpc::ChangeConfig& late : {first, second}) {
    reply = fleet.caller.ask(kController, late);
    CHECK(reply.status.code() == StatusCode::TestAndSetFailed);
    CHECK(reply.config_version == 2);
  }
  CHECK(fleet.caller.ask(kController, rpc::GetConfig{}).versions.back().values.empty());
  CHECK(fleet.caller.ask(kController, set({"maintenance.paused=true"})).config_version == 3);  // Set without a version.
}

TEST_CASE("fleet controller: a change of nodes that says what it has seen is late if anything came between") {
  Fleet fleet;
  fleet.start_all();
  const auto look = [&] { return fleet.caller.ask(kController, rpc::GetStatus{}).changed_unix_us; };
  rpc::ChangeNodes retire = change(rpc::NodeAction::Retire, "storage.0");
  retire.if_unchanged = true;
  retire.unchanged_since_us = look();
  REQUIRE(fleet.caller.ask(kController, retire).status);
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.state().node(NodeId::storage(0)).state == NodeState::Retired);
  rpc::ChangeNodes up = change(rpc::NodeAction::Up, "storage.0");
  up.if_unchanged = true;
  up.unchanged_since_us = look();
  REQUIRE(fleet.caller.ask(kController, up).status);
  for (const rpc::ChangeNodes& late : {retire, up}) {
    CHECK(fleet.caller.ask(kController, late).status.code() == StatusCode::TestAndSetFailed);
  }
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(fleet.state().is_up(NodeId::storage(0)));
  CHECK(fleet.caller.ask(kController, change(rpc::NodeAction::Retire, "storage.0")).status);  // `if_unchanged`: false.
}

TEST_CASE("fleet controller: every published state is counted once") {
  Fleet fleet;
  fleet.start_all();
  CHECK(fleet.metric("fjord_fleetcontroller_states_total") == 1);
  fleet.stop_node("storage.1");
  REQUIRE(fleet.run_until_all_know(2, seconds(3)));
  CHECK(fleet.metric("fjord_fleetcontroller_states_total") == 2);
}

TEST_CASE("fleet controller: a caller gets the state only if it is newer than the one that it knows") {
  Fleet fleet;
  fleet.start_all();
  rpc::GetClusterInfo question;
  question.known_state_version = 1;
  rpc::ClusterInfo info = fleet.caller.ask(kController, question).info;
  CHECK(info.state_version == 1);
  CHECK(info.state.empty());
  CHECK(info.storage_addresses.empty());
  fleet.stop_node("storage.1");
  REQUIRE(fleet.run_until_all_know(2, seconds(3)));
  info = fleet.caller.ask(kController, question).info;
  CHECK(info.state_version == 2);
  CHECK_FALSE(info.state.empty());
  CHECK(info.storage_addresses == fleet.options.storage);
}

TEST_CASE("fleet controller: the status names the group of each storage node") {
  Fleet fleet;
  fleet.options.distribution = "redundancy:2 (root (east 0 1) (west 2))";
  fleet.start_all();
  std::vector<std::string> groups;
  const rpc::GetStatusReply status = fleet.caller.ask(kController, rpc::GetStatus{});
  for (const rpc::NodeStatus& node : status.nodes) groups.push_back(node.node + ": " + node.group);
  CHECK(groups == std::vector<std::string>{"distributor.0: ", "storage.0: east", "storage.1: east", "storage.2: west"});
}

TEST_CASE("fleet controller: schemas that two operators deploy at the same time are both there") {
  Fleet fleet;
  fleet.start_all();
  // The store is slow, so both requests arrive before the first write is answered.
  fleet.store_faults.pause = milliseconds(500);
  const auto process = fleet.world.scheduler.make_node_scheduler("operators");
  const auto executor = process->make_executor("operators");
  const auto transport = fleet.world.network.transport_for("operators");
  std::vector<rpc::DeploySchemasReply> replies;
  for (const char* schema : {"document song { field title type string { } }", "document album { }"}) {
    rpc::call(*transport, kController, rpc::DeploySchemas{.schemas = {schema}}, seconds(5), *executor,
              [&](Result<rpc::DeploySchemasReply> reply) {
                REQUIRE(reply);
                replies.push_back(std::move(*reply));
              });
  }
  REQUIRE(fleet.world.scheduler.run_until([&] { return replies.size() == 2; }, seconds(6)));
  for (const rpc::DeploySchemasReply& reply : replies) CHECK(reply.status);
  CHECK(replies[0].schema_version == 1);
  CHECK(replies[1].schema_version == 2);
  CHECK(fleet.caller.ask(kController, rpc::GetClusterInfo{}).info.schemas.size() == 2);
}

TEST_CASE("fleet controller: a node that restarts in maintenance gets the state with its first answer") {
  Fleet fleet(seconds(600));
  fleet.options.poll_interval = seconds(5);
  fleet.options.down_after = seconds(60);
  fleet.start_all();
  fleet.world.scheduler.run_for(seconds(1));
  REQUIRE(fleet.caller.ask(kController, change(rpc::NodeAction::Maintenance, "storage.1")).refusals.empty());
  REQUIRE(fleet.run_until_all_know(2, seconds(1)));
  fleet.stop_node("storage.1");
  fleet.start_node("storage.1");
  // The controller does not know of the restart, so its next poll has no state.
  REQUIRE(fleet.world.scheduler.run_until([&] { return fleet.node("storage.1").polls == 1; }, seconds(6)));
  CHECK(fleet.node("storage.1").version() == 0);
  fleet.world.scheduler.run_for(milliseconds(500));  // Half a second is much less than the poll interval.
  CHECK(fleet.node("storage.1").version() == 2);
  CHECK(fleet.state().version() == 2);
}

TEST_CASE("fleet controller: does not start with an impossible distribution") {
  Fleet fleet;
  // The distribution names storage.3, which does not exist.
  fleet.options.distribution = DistributionConfig::flat(4, 2).to_string();
  CHECK(fleet.start_controller().code() == StatusCode::InvalidArgument);
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
  AnsweringNode& distributor = fleet.node("distributor.0");
  rpc::NodeLatency latency{1, 55'000, 0, 400, 0, false};
  distributor.latencies = {latency};
  fleet.world.scheduler.run_for(seconds(2));
  CHECK(distributor.slow_storage.empty());
  CHECK(slow_of("storage.1").empty());

  distributor.latencies[0].suspect = true;
  REQUIRE(fleet.world.scheduler.run_until([&] { return !distributor.slow_storage.empty(); }, seconds(1)));
  CHECK(distributor.slow_storage == std::vector<std::uint16_t>{1});
  CHECK(slow_of("storage.1") == "reads take 55.0 ms (others 0.4 ms); 1 of 1 distributors");
  CHECK(slow_of("storage.0").empty());
  CHECK(fleet.metric("fjord_fleetcontroller_slow_nodes") == 1);
  fleet.world.scheduler.run_for(seconds(1));
  const rpc::GetHistoryReply history = fleet.caller.ask(kController, rpc::GetHistory{});
  const auto about_storage_1 = [](const rpc::StateChange& change) { return change.what == "storage.1: slow"; };
  CHECK(std::count_if(history.changes.begin(), history.changes.end(), about_storage_1) == 1);
  CHECK(fleet.state().version() == 1);
  CHECK(fleet.state().is_up(NodeId::storage(1)));

  distributor.latencies[0].suspect = false;
  fleet.world.scheduler.run_for(seconds(2));
  CHECK_FALSE(distributor.slow_storage.empty());  // One good report does not end the suspicion.
  REQUIRE(fleet.world.scheduler.run_until([&] { return distributor.slow_storage.empty(); }, seconds(5)));
  CHECK_FALSE(slow_of("storage.1").empty());  // Operators are told when it was well for a minute.
  fleet.world.scheduler.run_for(seconds(60));
  CHECK(slow_of("storage.1").empty());
  CHECK(fleet.metric("fjord_fleetcontroller_slow_nodes") == 0);
}

TEST_CASE("fleet controller: the metrics have the nodes that are up from the first state on, and after a restart") {
  Fleet fleet;
  fleet.start_all();
  const auto shows = [&](double count) {
    return fleet.world.scheduler.run_until([&] { return fleet.metric("fjord_fleetcontroller_nodes_up") == count; },
                                           seconds(30));
  };
  CHECK(shows(4));
  CHECK(fleet.state().version() == 1);
  fleet.stop_node("storage.1");
  CHECK(shows(3));
  const std::uint64_t version = fleet.state().version();
  REQUIRE(fleet.start_controller());
  CHECK(shows(3));
  CHECK(fleet.state().version() == version);  // No new state was needed for that.
  fleet.ensemble.disconnect(kController);
  CHECK(shows(0));  // Without the store the controller leads no more and counts no nodes.
}

}  // namespace fjord::fleetcontroller
