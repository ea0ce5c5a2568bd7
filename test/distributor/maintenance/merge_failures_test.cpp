#include "maintenance/merge_failures.h"

#include <catch2/catch.hpp>

#include "../distributor_world.h"

namespace fjord::test {

using distributor::BucketDatabase;
using distributor::MergeFailures;

TEST_CASE("merge failures: a bucket is failing after several in a row and some time, until one succeeds") {
  const BucketId bucket(8, 5);
  BucketDatabase database;
  database.add(bucket);
  MergeFailures failures;
  MonotonicTime now{1'000'000};
  for (unsigned i = 1; i < MergeFailures::kInARow; ++i) failures.failed(bucket, now);
  now = now + MergeFailures::kForAtLeast;
  CHECK(failures.summary(database, now).buckets == 0);  // Too few failures in a row.
  failures.note(bucket, "storage.1: NO_SPACE");
  failures.failed(bucket, now);
  CHECK(failures.summary(database, now).buckets == 1);
  CHECK(failures.summary(database, now).newest == bucket.to_string() + ": storage.1: NO_SPACE");
  failures.forget(bucket);
  CHECK(failures.summary(database, now).buckets == 0);
  CHECK(failures.summary(database, now).newest.empty());

  for (unsigned i = 0; i < 2 * MergeFailures::kInARow; ++i) failures.failed(bucket, now);
  CHECK(failures.summary(database, now + MergeFailures::kForAtLeast - microseconds(1)).buckets ==
        0);  // The failures last too short a time.
  CHECK(failures.summary(database, now + MergeFailures::kForAtLeast).buckets == 1);
  database.erase(bucket);
  CHECK(failures.summary(database, now + MergeFailures::kForAtLeast).buckets == 0);
}

TEST_CASE("distributor: merges that fail again and again are told with the node and its reason, until one succeeds") {
  DistributorWorld world(2);
  world.give_state(1);
  REQUIRE(world.ask(put_batch("id:test:item:n=1:a")).results.at(0).status);
  const BucketId bucket = bucket_of_id("id:test:item:n=1:a");
  world.storage[1][bucket.raw()].damaged = true;
  world.hook = [](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != 1 || !std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    rpc::MergeBucketReply refused;
    refused.status = Status(StatusCode::NoSpace, "storage.1 takes no more from other replicas: 98.0 % used");
    return Result<rpc::Reply>(rpc::Reply(refused));
  };
  world.run(seconds(4));
  CHECK(world.ask(rpc::Poll{}).buckets_failing == 0);
  world.run(seconds(6));
  const rpc::PollReply failing = world.ask(rpc::Poll{});
  CHECK(failing.buckets_failing == 1);
  CHECK_THAT(failing.failing, Catch::Contains("storage.1: ") && Catch::Contains("98.0 % used"));
  world.hook = nullptr;
  world.run(seconds(2));
  CHECK(world.ask(rpc::Poll{}).buckets_failing == 0);
  CHECK(world.ask(rpc::Poll{}).failing.empty());
}

}  // namespace fjord::test
