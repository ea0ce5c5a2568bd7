#include <catch2/catch.hpp>

#include "../distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);

rpc::CheckWithoutReply check(DistributorWorld& world, std::vector<std::uint16_t> nodes, std::uint64_t version = 1) {
  rpc::CheckWithout question;
  question.state_version = version;
  question.nodes = std::move(nodes);
  return world.ask(std::move(question));
}

/// Gives each of two nodes a replica of every bucket.
void fill(DistributorWorld& world) {
  world.give_state(1);
  REQUIRE(world.ask(put_batch(kId)).results.at(0).status);
  REQUIRE(world.storage[0].contains(kBucket.raw()));
  REQUIRE(world.storage[1].contains(kBucket.raw()));
}

}  // namespace

TEST_CASE("check without: a bucket with a replica elsewhere could be served, one without could not") {
  DistributorWorld world(2);
  fill(world);
  rpc::CheckWithoutReply reply = check(world, {0});
  REQUIRE(reply.status);
  CHECK(reply.buckets > 0);
  CHECK(reply.unavailable == 0);
  CHECK(check(world, {1}).unavailable == 0);
  reply = check(world, {0, 1});
  CHECK(reply.unavailable == reply.buckets);
  REQUIRE_FALSE(reply.reasons.empty());
  CHECK_THAT(reply.reasons.front(), Catch::Contains("all its intact replicas are there"));
  CHECK(check(world, {}).unavailable == 0);
}

TEST_CASE("check without: what a replica says of itself counts, not what the distributor believes") {
  DistributorWorld world(2);
  fill(world);
  TestReplica& replica = world.storage[1][kBucket.raw()];
  const ReplicaSet set = replica.set;
  REQUIRE(set.epoch > 0);

  replica.set = {};  // The node never accepted the replica set, like a process that runs under another index.
  rpc::CheckWithoutReply reply = check(world, {0});
  CHECK(reply.unavailable == 1);
  REQUIRE(reply.reasons.size() == 1);
  CHECK_THAT(reply.reasons.front(), Catch::Contains("storage.1 does not know itself as a member"));
  CHECK(check(world, {1}).unavailable == 0);  // The replica on the other node is intact.

  replica.set = set;
  CHECK(check(world, {0}).unavailable == 0);
  replica.damaged = true;
  CHECK(check(world, {0}).unavailable == 1);
  replica.damaged = false;
  world.storage[1].erase(kBucket.raw());
  reply = check(world, {0});
  CHECK(reply.unavailable == 1);
  CHECK_THAT(reply.reasons.front(), Catch::Contains("storage.1 does not report it"));
}

TEST_CASE("check without: a node that does not answer serves nothing, and another cluster state is another question") {
  DistributorWorld world(2);
  fill(world);
  CHECK(check(world, {0}, 2).status.code() == StatusCode::WrongDistribution);
  world.hook = [](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != 1 || !std::holds_alternative<rpc::GetBucketInfo>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "silent"));
  };
  const rpc::CheckWithoutReply reply = check(world, {0});
  REQUIRE(reply.status);
  CHECK(reply.unavailable > 0);
}

TEST_CASE("check without: a part of the space that no node reports could be on the nodes that are away then") {
  DistributorWorld world(3, 3);
  world.give_state(1, " .2.s:d");  // Nothing can be made with three replicas, and fewer nodes are away than that.
  world.run(seconds(1));
  rpc::CheckWithoutReply reply = check(world, {1});
  REQUIRE(reply.status);
  CHECK(reply.unavailable == 0);
  reply = check(world, {0, 1});
  CHECK(reply.buckets == 2);
  CHECK(reply.unavailable == 2);
  REQUIRE(reply.reasons.size() == 2);
  CHECK_THAT(reply.reasons.front(), Catch::Contains("bucket 0x") && Catch::Contains("no storage node has all of it"));
}

TEST_CASE("check without: as many nodes as there are replicas may be stopped if others have all buckets") {
  DistributorWorld world(4, 2, 4);
  world.give_state(1, " .0.v:1 .1.v:1 .2.v:1 .3.v:1");
  world.run(seconds(1));
  CHECK(check(world, {0, 1}).unavailable > 0);  // Some buckets have both replicas there.
  world.give_state(2, " .0.s:d .1.v:1 .2.v:1 .3.v:1");
  world.run(seconds(10));
  world.give_state(3, " .0.s:d .1.s:d .2.v:1 .3.v:1");
  world.run(seconds(10));
  const rpc::CheckWithoutReply reply = check(world, {2}, 3);
  CHECK(reply.buckets == 16);
  CHECK(reply.unavailable == 0);
}

}  // namespace fjord::test
