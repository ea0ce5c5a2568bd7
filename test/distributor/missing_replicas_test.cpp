// Replicas that are gone although the distributor has not ordered it.

#include <catch2/catch.hpp>

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);

void fill(DistributorWorld& world) {
  world.give_state(1);
  REQUIRE(world.ask(put_batch(kId)).results.front().status);
  world.run(seconds(3));
}

StatusCode get_code(DistributorWorld& world) { return world.ask(get_batch(kId)).results.front().status.code(); }

rpc::PollReply report(DistributorWorld& world) { return world.ask(rpc::Poll{}); }

}  // namespace

TEST_CASE("missing replicas: one that is gone is made again from the other within seconds") {
  DistributorWorld world(3);
  fill(world);
  const std::uint16_t node = world.ideal(kBucket).front();
  world.storage[node].erase(kBucket.raw());
  world.run(seconds(6));
  CHECK(world.holds(node, kBucket));
  CHECK(world.storage[node][kBucket.raw()].documents.contains(kId));
  CHECK(get_code(world) == StatusCode::Ok);
  CHECK(report(world).buckets_unavailable == 0);
  CHECK(report(world).buckets_out_of_sync == 0);
}

TEST_CASE("missing replicas: a bucket without any replica is unavailable within seconds, and not a missing document") {
  DistributorWorld world(3);
  fill(world);
  CHECK(report(world).buckets_unavailable == 0);
  for (auto& storage : world.storage) storage.clear();
  world.run(seconds(3));
  CHECK(report(world).buckets_unavailable > 0);
  CHECK(get_code(world) == StatusCode::Unavailable);
}

TEST_CASE("missing replicas: nothing is collected again while all are there") {
  DistributorWorld world(3);
  fill(world);
  const std::uint64_t epoch = world.set_at(world.ideal(kBucket).front(), kBucket).epoch;
  world.run(seconds(10));
  CHECK(world.set_at(world.ideal(kBucket).front(), kBucket).epoch == epoch);
  CHECK(report(world).buckets_out_of_sync == 0);
}

}  // namespace fjord::test
