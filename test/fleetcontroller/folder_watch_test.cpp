#include "folder_watch.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "fleet_world.h"

namespace fjord::fleetcontroller {
namespace {

constexpr std::uint64_t kFirst = 11;
constexpr std::uint64_t kOther = 22;

rpc::PollReply of_cluster(std::uint64_t id) {
  rpc::PollReply reply;
  reply.folder_cluster = id;
  return reply;
}

}  // namespace

TEST_CASE("folder watch: what the first folder of a node means") {
  const auto judge = [](bool has_served, bool adopted) {
    return judge_folder(nullptr, has_served, kFirst, adopted, 5);
  };
  CHECK(judge(false, false).next == FolderRecord{kFirst, 0, 0});              // a new node
  CHECK(judge(true, true).next == FolderRecord{kFirst, 0, 0});                // a folder of an earlier version
  CHECK(judge(true, false).next == FolderRecord{kFirst, kUnknownFolder, 5});  // a node that served has no data
  CHECK(judge(true, false).is_lost);
}

TEST_CASE("folder watch: another folder than the recorded one has lost the data, also when a lost one comes back") {
  const FolderRecord known{kFirst, 0, 0};
  CHECK_FALSE(judge_folder(&known, true, kFirst, false, 5).is_lost);
  CHECK_FALSE(judge_folder(&known, true, 0, false, 5).is_lost);  // an earlier version names no folder
  for (const bool adopted : {false, true}) {
    const FolderVerdict verdict = judge_folder(&known, true, kOther, adopted, 5);
    CHECK(verdict.is_lost);
    CHECK(verdict.next == FolderRecord{kOther, kFirst, 5});
  }
  const FolderRecord lost{kOther, kFirst, 5};
  CHECK(judge_folder(&lost, true, kOther, false, 9).next == lost);
  CHECK(judge_folder(&lost, true, 33, false, 9).next == FolderRecord{33, kFirst, 5});
  CHECK(judge_folder(&lost, true, kFirst, false, 9).next == FolderRecord{kFirst, kOther, 9});
  const FolderRecord replaced{};  // fjord node replace
  CHECK(judge_folder(&replaced, true, kOther, false, 9).next == FolderRecord{kOther, 0, 0});
}

TEST_CASE("folder watch: a cluster without records goes on under the number that all of its nodes name") {
  CHECK(choose_cluster_id({}, 7) == 7);
  CHECK(choose_cluster_id({of_cluster(0), of_cluster(0)}, 7) == 7);
  CHECK(choose_cluster_id({of_cluster(3), of_cluster(3)}, 7) == 3);
  CHECK(choose_cluster_id({of_cluster(3), of_cluster(4)}, 7) == 7);
  CHECK(choose_cluster_id({of_cluster(3), of_cluster(0)}, 7) == 7);
}

TEST_CASE("folder watch: the record of identities survives encoding") {
  IdentityRecord record;
  record.cluster_id = ~std::uint64_t{0};
  record.folders["storage.0"] = {kFirst, 0, 0};
  record.folders["storage.1"] = {kOther, kFirst, 1'795'437'667'118'203};
  const Result<IdentityRecord> parsed = parse_identity_record(encode(record));
  REQUIRE(parsed);
  CHECK(*parsed == record);
  std::string damaged = encode(record);
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  CHECK(parse_identity_record(damaged).error().code() == StatusCode::Corruption);
}

namespace {

/// Three storage nodes with folders, whose cluster is in force.
struct FleetWithFolders : Fleet {
  FleetWithFolders() {
    for (const char* name : {"storage.0", "storage.1", "storage.2", "distributor.0"}) start_node(name);
    for (std::uint16_t i = 0; i < 3; ++i) storage(i).folder = 100u + i;
    REQUIRE(start_controller());
    REQUIRE(run_until_all_know(1, seconds(5)));
    world.scheduler.run_for(seconds(1));
  }
  AnsweringNode& storage(std::uint16_t i) { return node(NodeId::storage(i).to_string()); }
  /// Ends a node and starts it again with another folder.
  void come_back(std::uint16_t i, std::uint64_t folder) {
    const std::string name = NodeId::storage(i).to_string();
    stop_node(name);
    world.scheduler.run_for(seconds(3));
    start_node(name);
    storage(i).folder = folder;
    world.scheduler.run_for(seconds(3));
  }
  bool is_lost(std::uint16_t i) { return state().has_lost_data(i); }
  std::string reason(std::uint16_t i) {
    const rpc::GetStatusReply status = caller.ask(kController, rpc::GetStatus{});
    for (const rpc::NodeStatus& one : status.nodes) {
      if (one.node == NodeId::storage(i).to_string()) return one.reason;
    }
    return "unknown";
  }
};

}  // namespace

TEST_CASE("folder watch: a node that comes back empty is marked and named until its data is complete elsewhere") {
  FleetWithFolders fleet;
  CHECK_FALSE(fleet.is_lost(1));
  CHECK(fleet.reason(1).empty());
  fleet.node("distributor.0").out_of_sync = 4;
  fleet.come_back(1, 555);
  CHECK(fleet.state().is_up(NodeId::storage(1)));
  CHECK(fleet.is_lost(1));
  CHECK(fleet.reason(1).find("came back without its data: it has folder 000000000000022b instead of that of folder "
                             "0000000000000065") == 0);

  // A new leader knows it, too, and the mark stays while the node is away.
  REQUIRE(fleet.start_controller());
  fleet.world.scheduler.run_for(seconds(6));
  CHECK(fleet.is_lost(1));
  fleet.stop_node("storage.1");
  fleet.world.scheduler.run_for(seconds(4));
  CHECK(fleet.is_lost(1));
  fleet.come_back(1, 555);
  CHECK(fleet.is_lost(1));

  fleet.node("distributor.0").out_of_sync = 0;
  fleet.world.scheduler.run_for(seconds(3));
  CHECK_FALSE(fleet.is_lost(1));
  CHECK(fleet.reason(1).empty());
}

TEST_CASE("folder watch: a lost folder that comes back, and a loss that an operator accepts") {
  FleetWithFolders fleet;
  fleet.node("distributor.0").unavailable = 4;
  fleet.come_back(0, 555);
  fleet.come_back(1, 556);
  CHECK(fleet.is_lost(0));
  CHECK(fleet.is_lost(1));

  // Folder 555 may have taken writes alone.
  fleet.come_back(0, 100);
  CHECK(fleet.is_lost(0));
  CHECK(fleet.reason(0).find("it has folder 0000000000000064 instead of that of folder 000000000000022b") !=
        std::string::npos);

  rpc::ChangeNodesReply refused = fleet.caller.ask(kController, change(rpc::NodeAction::AcceptLoss, "storage.2"));
  CHECK(refused.status.code() == StatusCode::InvalidArgument);
  rpc::ChangeNodesReply accepted = fleet.caller.ask(kController, change(rpc::NodeAction::AcceptLoss, "storage.1"));
  INFO(accepted.status.to_string());
  CHECK(accepted.status);
  fleet.world.scheduler.run_for(seconds(3));
  const ClusterState state = fleet.state();
  CHECK_FALSE(state.has_lost_data(1));
  CHECK(state.replicas_assured() == 1);  // Buckets may have had one of their two replicas there.
}

TEST_CASE("folder watch: a mark stays until a state has had the process that came back with the former folder") {
  FleetWithFolders fleet;
  fleet.node("distributor.0").out_of_sync = 4;
  fleet.come_back(0, 555);
  REQUIRE(fleet.is_lost(0));
  const auto published = [&] { return fleet.node("distributor.0").snapshots.get(); };
  const std::uint64_t before = published()->state_version();
  // A restart that is too short for the node to be called down. What the distributor says next is of the state before.
  fleet.stop_node("storage.0");
  fleet.start_node("storage.0");
  fleet.storage(0).folder = 100;
  fleet.node("distributor.0").out_of_sync = 0;
  for (int i = 0; i < 10'000 && published()->state_version() == before; ++i) {
    fleet.world.scheduler.run_for(Duration(200));
  }
  REQUIRE(published()->state_version() != before);
  CHECK(published()->state().has_lost_data(0));
  fleet.world.scheduler.run_for(seconds(3));
  CHECK_FALSE(fleet.is_lost(0));
}

TEST_CASE("folder watch: the number of the cluster is in all news and does not change") {
  FleetWithFolders fleet;
  const std::uint64_t id = fleet.node("storage.0").snapshots.get()->info().cluster_id;
  CHECK(id != 0);
  CHECK(fleet.node("distributor.0").snapshots.get()->info().cluster_id == id);
  REQUIRE(fleet.start_controller());
  fleet.start_node("storage.0");
  fleet.world.scheduler.run_for(seconds(6));
  CHECK(fleet.node("storage.0").snapshots.get()->info().cluster_id == id);
}

}  // namespace fjord::fleetcontroller
