// The work of a distributor while an operator has paused maintenance (docs/operating/maintenance.md, "Pause").

#include <algorithm>
#include <catch2/catch.hpp>

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);

std::string state_of(std::uint16_t node, const std::string& state) {
  return " ." + std::to_string(node) + ".s:" + state;
}

/// Three storage nodes and a bucket with two replicas, one of which lies on the node that is not ideal for it. The
/// third node waits to be filled, since maintenance is paused.
struct PausedWorld : DistributorWorld {
  PausedWorld() : DistributorWorld(3) {
    hook = [this](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
      if (std::holds_alternative<rpc::MergeBucket>(request)) merged.push_back(node);
      return std::nullopt;
    };
    give_state(1, kNodes);
    stays = ideal(kBucket)[0];
    waits = ideal(kBucket)[1];
    leaves = static_cast<std::uint16_t>(3 - stays - waits);
    for (std::uint16_t node : {stays, leaves}) {
      TestReplica& replica = storage[node][kBucket.raw()];
      replica.set = {ReplicaSet::make_epoch(1, 1), {stays, leaves}};
      replica.documents[kId] = {100, false, "", "old"};
    }
    pause(true);
    give_state(2, kNodes);
    run(seconds(2));
    REQUIRE(merged.empty());
    REQUIRE(holds(waits, kBucket));
    REQUIRE_FALSE(is_filled(waits));
  }
  void pause(bool paused) { REQUIRE(tunables().set("maintenance.paused", paused ? 1 : 0).is_ok()); }
  /// Takes the node down in the state `version`, and lets it restart in the state `version` + 1.
  void kill_and_restart(std::uint16_t node, std::uint64_t version) {
    give_state(version, std::string(kNodes) + state_of(node, "d"));
    run(seconds(2));
    give_state(version + 1, nodes_since(node, version + 1));
    run(seconds(2));
  }
  /// Returns the text of the nodes' states. `node` is up only since `version`.
  static std::string nodes_since(std::uint16_t node, std::uint64_t version) {
    std::string text;
    for (std::uint16_t i = 0; i < 3; ++i) {
      text += " ." + std::to_string(i) + ".v:" + std::to_string(i == node ? version : 1);
    }
    return text;
  }
  bool is_filled(std::uint16_t node) { return storage[node][kBucket.raw()].documents.contains(kId); }
  bool is_member(std::uint16_t node) { return set_at(node, kBucket).contains(node); }

  static constexpr const char* kNodes = " .0.v:1 .1.v:1 .2.v:1";
  std::uint16_t stays = 0;   ///< A member on an ideal node.
  std::uint16_t leaves = 0;  ///< A member on another node.
  std::uint16_t waits = 0;   ///< An ideal node that is to become a member.
  std::vector<std::uint16_t> merged;
};

}  // namespace

TEST_CASE("pause: a move that waits goes on waiting after the node that is to be filled was killed and is back") {
  PausedWorld world;
  world.kill_and_restart(world.waits, 3);
  CHECK_FALSE(world.is_filled(world.waits));
  CHECK(world.is_member(world.leaves));
  CHECK(world.ask(rpc::Poll{}).buckets_unavailable == 0);
  // The pause costs no operation: the members were made equal.
  CHECK(world.ask(put_batch(kId)).results.at(0).status);
  CHECK(world.ask(update_batch(kId, R"({"value": {"assign": "x"}})")).results.at(0).status);
  CHECK_FALSE(world.is_member(world.waits));

  world.pause(false);
  world.run(seconds(2));
  CHECK(world.is_filled(world.waits));
  CHECK(world.is_member(world.waits));
  CHECK_FALSE(world.holds(world.leaves, kBucket));
}

TEST_CASE("pause: a lost replica is made on another node, and does not move back when its node is up again") {
  PausedWorld world;
  world.give_state(3, std::string(PausedWorld::kNodes) + state_of(world.stays, "d"));
  world.run(seconds(2));
  REQUIRE(world.is_filled(world.waits));  // The bucket has all its replicas again.
  REQUIRE(world.is_member(world.waits));
  world.merged.clear();
  world.give_state(4, PausedWorld::nodes_since(world.stays, 4));
  world.run(seconds(2));
  // The distributor reads the replica that was away for new entries, but merges nothing into it.
  CHECK(std::count(world.merged.begin(), world.merged.end(), world.stays) == 0);
  CHECK_FALSE(world.merged.empty());
  CHECK(world.is_member(world.leaves));
  CHECK(world.is_member(world.waits));

  world.pause(false);
  world.run(seconds(2));
  CHECK(world.is_member(world.stays));
  CHECK_FALSE(world.holds(world.leaves, kBucket));
}

TEST_CASE("pause: no more replicas are filled than are missing") {
  DistributorWorld world(4, 2);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1 .3.v:1");
  const std::vector<std::uint16_t> ideal = world.ideal(kBucket);
  std::vector<std::uint16_t> others;
  for (std::uint16_t node = 0; node < 4; ++node) {
    if (std::find(ideal.begin(), ideal.end(), node) == ideal.end()) others.push_back(node);
  }
  // One replica is left, on a node to which the bucket does not belong.
  TestReplica& replica = world.storage[others[0]][kBucket.raw()];
  replica.set = {ReplicaSet::make_epoch(1, 1), {others[0]}};
  replica.documents[kId] = {100, false, "", "old"};
  REQUIRE(world.tunables().set("maintenance.paused", 1).is_ok());
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 .3.v:1");
  world.run(seconds(3));
  const auto filled = [&](std::uint16_t node) { return world.storage[node][kBucket.raw()].documents.contains(kId); };
  CHECK(filled(ideal[0]) != filled(ideal[1]));
  CHECK(filled(others[0]));
  REQUIRE(world.tunables().set("maintenance.paused", 0).is_ok());
  world.run(seconds(3));
  CHECK((filled(ideal[0]) && filled(ideal[1])));
  CHECK_FALSE(world.holds(others[0], kBucket));
}

TEST_CASE("pause: replicas that are in sync stay when the redundancy becomes less") {
  DistributorWorld world(3, 3);
  world.give_state(1, PausedWorld::kNodes);
  for (std::uint16_t node = 0; node < 3; ++node) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), {0, 1, 2}};
    replica.documents[kId] = {100, false, "", "old"};
  }
  REQUIRE(world.tunables().set("maintenance.paused", 1).is_ok());
  world.set_redundancy(2);
  world.give_state(2, PausedWorld::kNodes);
  world.run(seconds(3));
  const auto holders = [&] {
    return (world.holds(0, kBucket) ? 1 : 0) + (world.holds(1, kBucket) ? 1 : 0) + (world.holds(2, kBucket) ? 1 : 0);
  };
  CHECK(holders() == 3);
  REQUIRE(world.tunables().set("maintenance.paused", 0).is_ok());
  world.run(seconds(3));
  CHECK(holders() == 2);
}

}  // namespace fjord::test
