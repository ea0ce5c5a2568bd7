// The counts that a distributor makes while it asks storage nodes for its buckets (docs/operating/controllers.md).

#include <catch2/catch.hpp>

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);

/// Storage nodes that hold one bucket each, and do not answer questions about it before the test lets them.
struct SilentWorld : DistributorWorld {
  SilentWorld() : DistributorWorld(3) {
    give_state(1, " .0.v:1 .1.v:1 .2.v:1");
    REQUIRE(ask(put_batch(kId)).results.at(0).status);
    loses = [this](const rpc::Request& request) {
      return silent && std::holds_alternative<rpc::GetBucketInfo>(request);
    };
  }
  rpc::PollReply counts() { return ask(rpc::Poll{}); }

  bool silent = true;
};

}  // namespace

TEST_CASE(
    "bucket health: a bucket that storage nodes are asked for is being collected, and unavailable after two seconds") {
  SilentWorld world;
  // Another node becomes an ideal node of the bucket, so the distributor has to collect its replicas.
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(world.ideal(kBucket)[1]) + ".s:r");
  rpc::PollReply counts = world.counts();
  REQUIRE(counts.buckets == 2);  // One bucket was never written to; the distributor must assume that it exists.
  CHECK(counts.buckets_collecting == 2);
  CHECK(counts.buckets_out_of_sync == 2);
  CHECK(counts.buckets_unavailable == 0);
  CHECK(world.gauge("fjord_distributor_buckets_collecting") == 2);

  world.run(milliseconds(1900));
  CHECK(world.counts().buckets_unavailable == 0);
  // A state that arrives while the buckets are collected does not restart their time limit.
  world.give_state(3, " .0.v:1 .1.v:1 .2.v:1 .0.s:r");
  world.run(milliseconds(200));
  counts = world.counts();
  CHECK(counts.buckets_collecting == 0);
  CHECK(counts.buckets_out_of_sync == 0);
  CHECK(counts.buckets_unavailable == 2);

  world.silent = false;
  world.run(seconds(2));
  counts = world.counts();
  CHECK(counts.buckets_unavailable == 0);
  CHECK(counts.buckets_collecting == 0);
  CHECK(world.ask(get_batch(kId)).results.at(0).status);
}

TEST_CASE("bucket health: a distributor that has just started is collecting") {
  SilentWorld world;
  world.restart();
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1");  // The state still describes the process before the restart.
  world.give_state(3, " .0.v:1 .1.v:1 .2.v:1", " .0.v:3");
  CHECK(world.counts().buckets_collecting == 2);
  CHECK(world.counts().buckets_unavailable == 0);
}

TEST_CASE("bucket health: a bucket whose members are all down is unavailable at once") {
  SilentWorld world;
  std::string state = " .0.v:1 .1.v:1 .2.v:1";
  for (const std::uint16_t node : world.set_at(world.ideal(kBucket)[0], kBucket).nodes) {
    state += " ." + std::to_string(node) + ".s:d";
  }
  world.give_state(2, state);
  CHECK(world.counts().buckets_unavailable == 2);  // One was never written to, but may be on the nodes that are down.
  CHECK(world.counts().buckets_collecting == 0);
}

TEST_CASE("bucket health: a bucket that may exist only on nodes that are away is unavailable after collecting, too") {
  DistributorWorld world(3);
  const auto state_without = [](std::vector<std::uint16_t> away) {
    std::string state = " .0.v:1 .1.v:1 .2.v:1";
    for (const std::uint16_t node : away) state += " ." + std::to_string(node) + ".s:d";
    return state;
  };
  world.give_state(1, state_without({}));
  REQUIRE(world.ask(put_batch(kId)).results.at(0).status);
  const std::vector<std::uint16_t> holders = world.set_at(world.ideal(kBucket)[0], kBucket).nodes;
  REQUIRE(holders.size() == 2);
  const BucketId other(1, 1 - (kBucket.raw() & 1));
  const std::string other_id = [&] {
    for (int i = 0;; ++i) {
      std::string id = "id:test:item::" + std::to_string(i);
      if (bucket_of_id(id) == other) return id;
    }
  }();
  const auto counts_after = [&](std::uint64_t version, const std::string& state) {
    world.restart();
    world.give_state(version, state);
    world.give_state(version + 1, state, " .0.v:" + std::to_string(version + 1));
    world.run(seconds(5));
    return world.ask(rpc::Poll{});
  };

  SECTION("no node that is up has reported any bucket") {
    const rpc::PollReply counts = counts_after(2, state_without(holders));
    CHECK(world.ask(get_batch(kId)).results.at(0).status.code() == StatusCode::Unavailable);
    CHECK(counts.buckets == 2);
    CHECK(counts.buckets_unavailable == 2);
    CHECK(counts.buckets_collecting == 0);
    CHECK(world.gauge("fjord_distributor_buckets_unreported") == 2);
  }
  SECTION("one half of a bucket has been reported") {
    const auto third = static_cast<std::uint16_t>(3 - holders[0] - holders[1]);
    world.storage[third][BucketId(2, other.raw() & 1).raw()].set = {ReplicaSet::make_epoch(1, 1), {third}};
    const rpc::PollReply counts = counts_after(2, state_without(holders));
    CHECK(counts.buckets == 3);  // A half, the bucket whose other half is missing, and the document's bucket.
    CHECK(counts.buckets_unavailable == 2);
  }
  SECTION("so few are away that each bucket was reported") {
    const rpc::PollReply counts = counts_after(2, state_without({holders[0]}));
    CHECK(world.ask(get_batch(other_id)).results.at(0).status.code() == StatusCode::NotFound);
    CHECK(counts.buckets == 2);  // The one without documents was made, too.
    CHECK(counts.buckets_unavailable == 0);
  }
}

TEST_CASE("bucket health: a bucket that was unavailable stays so while storage nodes are asked for it again") {
  DistributorWorld world(3);
  world.storage[0][kBucket.raw()].set = {ReplicaSet::make_epoch(1, 1), {0, 1}};
  world.give_state(1, " .0.v:5 .1.s:d .2.v:1");  // Node 0 restarted after the replica set was made.
  world.run(seconds(1));
  REQUIRE(world.ask(rpc::Poll{}).buckets_unavailable == 1);
  world.loses = [](const rpc::Request& request) { return std::holds_alternative<rpc::GetBucketInfo>(request); };
  world.give_state(2, " .0.v:5 .1.v:2 .2.v:1");
  CHECK(world.ask(rpc::Poll{}).buckets_unavailable == 1);
  CHECK(world.ask(rpc::Poll{}).buckets_collecting == 1);  // Nothing is known about the other bucket.
}

}  // namespace fjord::test
