#include "state_recovery.h"

#include "fleet_world.h"
#include "live_config.h"

namespace fjord::fleetcontroller {
namespace {

constexpr const char* kSchema = "document item { field number type int { header } }";
const rpc::RecoverState kForced{.dry_run = false, .force = true, .who = ""};
constexpr std::int64_t kNow = 1'700'000'000'000'000;

rpc::ClusterInfo info(std::uint64_t version, const std::string& nodes = "distributor:1 storage:3") {
  rpc::ClusterInfo known;
  known.state_version = version;
  known.state = "version:" + std::to_string(version) + " bits:4 " + nodes;
  known.distribution = "redundancy:2 (root 0 1 2)";
  known.distributor_addresses = {"distributor.0:1"};
  known.storage_addresses = {"storage.0:1", "storage.1:1", "storage.2:1"};
  known.term = 7;
  return known;
}

void add(KnownByNodes& known, const std::string& name, rpc::ClusterInfo what, std::uint64_t ceiling_us = 0) {
  rpc::GetClusterInfoReply reply;
  reply.info = std::move(what);
  reply.time_ceiling_us = ceiling_us;
  known.insert_or_assign(name, KnownByNode{name + ":1", std::move(reply)});
}
void add_silent(KnownByNodes& known, const std::string& name) {
  known.insert_or_assign(name, KnownByNode{name + ":1", Status(StatusCode::Timeout, "no answer")});
}

KnownByNodes all_know(std::uint64_t version) {
  KnownByNodes known;
  for (const char* name : {"distributor.0", "storage.0", "storage.1", "storage.2"}) add(known, name, info(version));
  return known;
}

rpc::RecoverStateReply ask(Fleet& fleet, bool dry_run, bool force = false) {
  rpc::RecoverState request;
  request.dry_run = dry_run;
  request.force = force;
  request.who = "ann";
  return fleet.caller.ask(kController, request);
}

}  // namespace

TEST_CASE("state recovery: the newest of everything counts, and the next version is above all that is known") {
  KnownByNodes known = all_know(57);
  rpc::ClusterInfo newer = info(58);
  newer.schema_version = 3;
  newer.schemas = {kSchema};
  newer.term = 9;
  newer.pending_state = "version:61 bits:4 distributor:1 storage:3 .1.s:d";
  newer.pending_distribution = newer.distribution;
  add(known, "storage.1", newer);
  rpc::ClusterInfo other = info(57);
  other.config_version = 4;
  other.config = {"storage.entries_max=100"};
  add(known, "storage.2", other, 0);
  add(known, "distributor.0", info(57), kNow + 5'000'000);

  const RecoveredRecords records = recover_records(known, {}, 2, kNow);
  REQUIRE(records.reply.status);
  CHECK(records.reply.refusals.empty());
  CHECK(records.reply.found.size() == 4);
  CHECK(records.reply.state_version == 58);
  CHECK(records.reply.next_version == 61 + kVersionGap);
  CHECK(records.cluster.active.version == 58);
  CHECK(records.cluster.active.state == newer.state);
  REQUIRE(records.cluster.pending);
  const ClusterState next = ClusterState::parse(records.cluster.pending->state).value();
  CHECK(next.version() == 61 + kVersionGap);
  CHECK(next.follows() == 58);
  CHECK(next.is_up(NodeId::storage(1)));  // The pending state, which may be in force nowhere, does not count.
  CHECK(next.time_floor_us() >= static_cast<std::uint64_t>(kNow) + 5'000'000);
  CHECK(records.time_limit_us >= next.time_floor_us());
  CHECK(2 + records.cluster.term_base == 10);  // The next term is above the highest known one.
  CHECK(records.schemas == SchemaRecord{3, {kSchema}});
  CHECK(records.cluster.config() == SettingValues{{"storage.entries_max", "100"}});
  CHECK(records.cluster.config_version() == 4);
  CHECK(records.cluster.nodes.storage == newer.storage_addresses);
  CHECK(records.cluster.nodes.distribution == newer.distribution);
  CHECK(records.cluster.nodes.distribution_bits == 4);
  CHECK(records.cluster.incarnations.empty());  // Every node may have restarted, so distributors ask all of them again.
  CHECK(parse_cluster_record(encode(records.cluster)).value() == records.cluster);
}

TEST_CASE("state recovery: a node that does not answer may know more, so that it takes force") {
  KnownByNodes known = all_know(57);
  add_silent(known, "storage.2");
  RecoveredRecords records = recover_records(known, {}, 1, kNow);
  REQUIRE(records.reply.status);
  REQUIRE(records.reply.refusals.size() == 1);
  CHECK_THAT(records.reply.refusals[0], Catch::StartsWith("storage.2 at storage.2:1 does not answer"));
  CHECK(records.cluster == ClusterRecord{});
  records = recover_records(known, kForced, 1, kNow);
  CHECK(records.reply.refusals.empty());
  CHECK(records.reply.warnings.size() == 1);
  CHECK(records.cluster.active.version == 57);
  // A node that was down in the newest state has not received it; a restarted node has received no state.
  for (const char* name : {"distributor.0", "storage.0", "storage.1"}) {
    add(known, name, info(58, "distributor:1 storage:3 .2.s:d"));
  }
  CHECK(recover_records(known, {}, 1, kNow).reply.refusals.empty());
  known = all_know(57);
  rpc::GetClusterInfoReply knows_nothing;
  knows_nothing.status = Status(StatusCode::NotReady, "storage.2 has heard of no cluster state yet");
  known.insert_or_assign("storage.2", KnownByNode{"storage.2:1", knows_nothing});
  CHECK(recover_records(known, {}, 1, kNow).reply.refusals.empty());
}

TEST_CASE("state recovery: nodes that contradict each other, or know nothing, recover nothing") {
  KnownByNodes known = all_know(57);
  rpc::ClusterInfo strange = info(57);
  strange.state = "version:57 bits:5 distributor:1 storage:3";
  add(known, "storage.1", strange);
  CHECK(recover_records(known, kForced, 1, kNow).reply.status.code() == StatusCode::Corruption);
  known.clear();
  add_silent(known, "storage.0");
  CHECK(recover_records(known, kForced, 1, kNow).reply.status.code() == StatusCode::NotFound);
}

TEST_CASE("state recovery: what operators wanted of nodes is taken from the state as far as it shows") {
  KnownByNodes known;
  for (const char* name : {"distributor.0", "storage.0", "storage.1"}) {
    add(known, name, info(57, "distributor:1 storage:3 .1.s:r .2.s:m"));
  }
  add_silent(known, "storage.2");
  const RecoveredRecords records = recover_records(known, {.dry_run = false, .force = true, .who = "ann"}, 1, kNow);
  REQUIRE(records.cluster.wanted.size() == 1);  // storage.2 may be in maintenance only because it was silent.
  CHECK(records.cluster.wanted.at("storage.1").state == NodeState::Retired);
}

TEST_CASE("fleet controller: without records beside running nodes it publishes nothing until it has recovered") {
  Fleet fleet;
  fleet.start_all();
  REQUIRE(fleet.deploy({kSchema}).status);
  REQUIRE(fleet.caller.ask(kController, set({"storage.entries_max=5000"})).status);
  fleet.stop_node("storage.2");
  fleet.world.scheduler.run_for(seconds(5));
  fleet.start_node("storage.2");
  fleet.world.scheduler.run_for(seconds(5));
  const ClusterState before = fleet.state();
  REQUIRE(before.version() >= 3);
  REQUIRE(before.is_up(NodeId::storage(2)));

  fleet.stop_controller();
  fleet.ensemble.lose_records();
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(20));
  // The controller without records, and its terms that rise with each election, have no effect on any node.
  for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) {
    CHECK(fleet.node(name).version() == before.version());
    CHECK(fleet.node(name).schema_version() == 1);
    CHECK_FALSE(fleet.node(name).renewed);
  }
  const Status refused = fleet.caller.ask(kController, rpc::GetStatus{}).status;
  CHECK(refused.code() == StatusCode::Unavailable);  // With this code clients do not repeat the request.
  CHECK_THAT(refused.message(), Catch::Contains("fjord state recover --from-nodes"));
  CHECK(fleet.controller().health().phase == "stranded");
  CHECK_THAT(fleet.controller().health().trouble, Catch::Contains("fjord state recover --from-nodes"));

  rpc::RecoverStateReply reply = ask(fleet, true);
  REQUIRE(reply.status);
  CHECK(reply.state_version == before.version());
  CHECK(reply.schemas == 1);
  CHECK(reply.settings == 1);
  CHECK(fleet.caller.ask(kController, rpc::GetStatus{}).status.code() ==
        StatusCode::Unavailable);  // The dry run had no effect.
  reply = ask(fleet, false);
  REQUIRE(reply.status);
  CHECK(reply.refusals.empty());
  REQUIRE(fleet.run_until_all_know(reply.next_version, seconds(10)));
  fleet.world.scheduler.run_for(seconds(5));
  const ClusterState after = fleet.state();
  CHECK(after.version() >= reply.next_version);
  for (const char* name : {"storage.0", "storage.1", "storage.2"}) CHECK(after.is_up(NodeId::parse(name).value()));
  for (const char* name : {"storage.0", "distributor.0"}) {
    CHECK(fleet.node(name).renewed);
    CHECK(fleet.node(name).schema_version() == 1);
    CHECK_FALSE(fleet.node(name).floor_too_low);
  }
  CHECK(fleet.caller.ask(kController, rpc::GetConfig{}).config_version == 1);
  CHECK(fleet.deploy({"document other { field number type int { header } }"}).schema_version == 2);

  // The records exist again, also for the next leader; there is nothing to recover.
  CHECK(ask(fleet, false).status.code() == StatusCode::InvalidArgument);
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(5));
  CHECK(fleet.state().version() >= after.version());
  CHECK(fleet.caller.ask(kController, rpc::GetHistory{}).changes.front().who == "ann");
}

TEST_CASE("fleet controller: a recovery asks also the nodes that only the first cluster state names") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_controller();
  fleet.ensemble.lose_records();
  fleet.options.storage = {"storage.0:1"};
  fleet.options.distribution = DistributionConfig::flat(1, 1).to_string();
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(2));
  const rpc::RecoverStateReply reply = ask(fleet, true);
  REQUIRE(reply.status);
  CHECK(reply.state_version == 1);
  CHECK(reply.found.size() == 4);
  fleet.stop_node("storage.2");
  CHECK_THAT(ask(fleet, true).refusals.at(0), Catch::StartsWith("storage.2 at storage.2:1 does not answer"));
}

TEST_CASE("fleet controller: older records than nodes know of, as from a copy, are lost records too") {
  Fleet fleet;
  fleet.start_all();
  fleet.stop_controller();
  const auto copy = fleet.ensemble.copy_records();
  REQUIRE(fleet.start_controller());
  for (int i = 0; i < 2; ++i) {
    fleet.stop_node("storage.1");
    fleet.world.scheduler.run_for(seconds(5));
    fleet.start_node("storage.1");
    fleet.world.scheduler.run_for(seconds(5));
  }
  const std::uint64_t version = fleet.state().version();
  REQUIRE(version >= 4);
  fleet.stop_controller();
  fleet.ensemble.set_records(copy);
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(10));
  CHECK(fleet.node("storage.0").version() == version);
  CHECK(fleet.caller.ask(kController, rpc::GetStatus{}).status.code() == StatusCode::Unavailable);
  REQUIRE(ask(fleet, false).refusals.empty());
  REQUIRE(fleet.run_until_all_know(version + kVersionGap, seconds(10)));
}

}  // namespace fjord::fleetcontroller
