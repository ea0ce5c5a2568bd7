#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "faulty_store.h"
#include "fleet_world.h"

namespace fjord::fleetcontroller {
namespace {

/// Several fleet controllers that elect a leader in one store.
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
  /// Kills a controller, which does not leave the store's election.
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
  CHECK(fleet.node("storage.0").version() == 1);  // The nodes keep their state.
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

TEST_CASE("fleet controller: an elected one keeps its leadership while a slow store answers, and says that it loads") {
  Fleet fleet;
  for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) fleet.start_node(name);
  fleet.store_faults.pause = milliseconds(500);
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(milliseconds(100));
  CHECK(fleet.controller().health().phase == "loading");
  CHECK(fleet.controller().health().trouble == "reads the record of the cluster");
  const Status refused = fleet.caller.ask(kController, rpc::GetStatus{}).status;
  CHECK(refused.code() == StatusCode::NotReady);
  CHECK(refused.message() == "controller:1 leads, but not yet: reads the record of the cluster");
  REQUIRE(fleet.run_until_all_know(1, seconds(10)));
  CHECK(fleet.controller().health().phase == "leading");
  CHECK(fleet.ensemble.leadership().term == 1);
}

TEST_CASE("fleet controller: a slow store gets one write of a record at a time") {
  Fleet fleet;
  fleet.start_all();
  fleet.store_faults.pause = seconds(1);
  const std::uint64_t granted = fleet.node("distributor.0").time_ceiling_us;
  fleet.world.scheduler.run_for(seconds(20));
  CHECK(fleet.node("distributor.0").time_ceiling_us > granted);  // The store has received a later limit meanwhile.
  CHECK(fleet.store().most_writes_at_once() == 1);
}

TEST_CASE("memory state store: a single candidate that resigns leads in the next term at once") {
  Fleet fleet;
  const auto process = fleet.world.scheduler.make_node_scheduler("candidate");
  const auto executor = process->make_executor("candidate");
  MemoryStateStore store(fleet.ensemble);
  std::vector<Leadership> heard;
  store.campaign(kController, *executor, [&](const Leadership& now) { heard.push_back(now); });
  fleet.world.scheduler.run_for(milliseconds(1));
  executor->post([&] { store.resign(); });
  fleet.world.scheduler.run_for(milliseconds(1));
  REQUIRE(heard.size() == 2);
  CHECK(heard[0].term == 1);
  CHECK(heard[0].mine);
  CHECK(heard[1].term == 2);
  CHECK(heard[1].mine);
  store.leave();
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

TEST_CASE("fleet controller: each state has a floor above all times that were granted before, by whoever led") {
  Candidates candidates(3);
  Fleet& fleet = candidates.fleet;
  const std::vector<std::string> names = {"storage.0", "storage.1", "storage.2", "distributor.0"};
  for (const std::string& name : names) fleet.start_node(name);
  REQUIRE(fleet.run_until_all_know(1, seconds(5)));
  AnsweringNode& distributor = fleet.node("distributor.0");
  std::uint64_t granted = 0;
  std::uint64_t floor = 0;
  for (int turn = 0; turn < 4; ++turn) {
    fleet.world.scheduler.run_for(seconds(3));
    const auto now_us = static_cast<std::uint64_t>(fleet.world.scheduler.clock().wall_now().us);
    CHECK(distributor.time_ceiling_us > granted);
    CHECK(distributor.time_ceiling_us >= now_us);  // A distributor whose clock is right can use the ceiling.
    CHECK(distributor.time_ceiling_us <= now_us + 20'000'000);
    granted = distributor.time_ceiling_us;
    if (turn == 1 || turn == 2) candidates.kill(candidates.leader());
    const std::uint64_t version = distributor.version();
    if (turn % 2 == 0) {
      fleet.stop_node("storage.2");
    } else {
      fleet.start_node("storage.2");
    }
    REQUIRE(fleet.world.scheduler.run_until([&] { return distributor.version() > version; }, seconds(30)));
    CHECK(distributor.snapshots.get()->state().time_floor_us() >= granted);
    CHECK(distributor.snapshots.get()->state().time_floor_us() > floor);
    floor = distributor.snapshots.get()->state().time_floor_us();
  }
  CHECK_FALSE(distributor.floor_too_low);
  CHECK(fleet.node("storage.0").time_ceiling_us == 0);  // Storage nodes get no ceiling, as they assign no timestamps.
}

}  // namespace fjord::fleetcontroller
