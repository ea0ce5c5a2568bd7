// Reads of one named replica, and a distributor's report about the replicas of a bucket.
#include "operations/replica_read.h"

#include <catch2/catch.hpp>

#include "../distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);

rpc::OperationResult only(rpc::ExecuteReply reply) {
  REQUIRE(reply.status);
  REQUIRE(reply.results.size() == 1);
  return std::move(reply.results[0]);
}
rpc::OperationResult put(DistributorWorld& world, const std::string& value) {
  return only(world.ask(put_batch(kId, 0, 1, value)));
}
rpc::OperationResult get_at(DistributorWorld& world, std::uint16_t node) {
  rpc::Execute batch = get_batch(kId);
  batch.operations[0].node = node;
  return only(world.ask(std::move(batch)));
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Returns a node that has no replica of the bucket.
std::uint16_t without_replica(const DistributorWorld& world) {
  std::uint16_t node = 0;
  while (world.storage[node].contains(kBucket.raw())) ++node;
  return node;
}
rpc::ShowBucketReply show(DistributorWorld& world, bool by_id = true) {
  rpc::ShowBucket request;
  if (by_id) {
    request.id = kId;
  } else {
    request.bucket = kBucket;
  }
  return world.ask(request);
}
const rpc::BucketReplica& of_node(const rpc::ShowBucketReply& reply, std::uint16_t node) {
  REQUIRE(reply.buckets.size() == 1);
  const auto& replicas = reply.buckets[0].replicas;
  const auto at = std::find_if(replicas.begin(), replicas.end(), [&](const auto& one) { return one.node == node; });
  REQUIRE(at != replicas.end());
  return *at;
}

}  // namespace

TEST_CASE("read of one replica: each gives what it has itself, be it older, newer or nothing") {
  DistributorWorld world(3, 2);
  world.give_state(1);
  const std::uint64_t old = put(world, "old").timestamp_us;
  const std::uint16_t other = world.ideal(kBucket)[1];
  TestReplica::Version before = world.storage[other][kBucket.raw()].documents[kId];
  const std::uint64_t now = put(world, "new").timestamp_us;
  world.storage[other][kBucket.raw()].documents[kId] = before;  // This replica has lost the second write.

  const rpc::OperationResult first = get_at(world, world.ideal(kBucket)[0]);
  REQUIRE(first.status);
  CHECK(first.timestamp_us == now);
  CHECK(has(first.json, "\"new\""));
  const rpc::OperationResult second = get_at(world, other);
  REQUIRE(second.status);
  CHECK(second.timestamp_us == old);
  CHECK(has(second.json, "\"old\""));

  world.storage[other][kBucket.raw()].documents[kId].removed = true;
  const rpc::OperationResult removed = get_at(world, other);
  CHECK(removed.status.code() == StatusCode::NotFound);
  CHECK(removed.timestamp_us == old);
  CHECK(has(removed.status.message(), std::to_string(old)));
  world.storage[other][kBucket.raw()].documents.erase(kId);
  const rpc::OperationResult missing = get_at(world, other);
  CHECK(missing.status.code() == StatusCode::NotFound);
  CHECK(missing.timestamp_us == 0);
}

TEST_CASE("read of one replica: a node without one, a node that is down and one that does not exist are named") {
  DistributorWorld world(3, 2);
  world.give_state(1);
  REQUIRE(put(world, "v").status);
  const std::uint16_t node = without_replica(world);
  const rpc::OperationResult none = get_at(world, node);
  CHECK(none.status.code() == StatusCode::InvalidArgument);
  CHECK(has(none.status.message(), "storage." + std::to_string(node)));
  CHECK(get_at(world, 9).status.code() == StatusCode::InvalidArgument);
  world.give_state(2, " ." + std::to_string(node) + ".s:d");
  CHECK(get_at(world, node).status.code() == StatusCode::Unavailable);
  CHECK(get_at(world, world.ideal(kBucket)[0]).status);

  rpc::Execute batch = put_batch(kId);
  batch.operations[0].node = node;
  CHECK(only(world.ask(std::move(batch))).status.code() == StatusCode::InvalidArgument);
}

TEST_CASE("read of one replica: a damaged one gives what verifies, and never says that a document is not there") {
  DistributorWorld world(2, 2);
  world.give_state(1);
  REQUIRE(put(world, "v").status);
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "merges never end here"));
  };
  world.storage[1][kBucket.raw()].damaged = true;
  world.restart();
  world.give_state(2);
  world.run(seconds(1));
  CHECK(has(get_at(world, 1).json, "\"v\""));
  world.storage[1][kBucket.raw()].documents.erase(kId);
  CHECK(get_at(world, 1).status.code() == StatusCode::Corruption);
  CHECK(of_node(show(world), 1).damaged);
}

TEST_CASE("read of one replica: a document that was never put is not found, and has no version") {
  DistributorWorld world(2, 2);
  world.give_state(1);
  const rpc::OperationResult result = get_at(world, 0);
  CHECK(result.status.code() == StatusCode::NotFound);
  CHECK(result.timestamp_us == 0);
}

TEST_CASE("show bucket: members in order with what they hold, and where the document differs") {
  DistributorWorld world(3, 2);
  world.give_state(1);
  const std::uint64_t version = put(world, "v").timestamp_us;
  rpc::ShowBucketReply reply = show(world);
  REQUIRE(reply.status);
  REQUIRE(reply.buckets.size() == 1);
  const rpc::BucketView& view = reply.buckets[0];
  CHECK(view.bucket == kBucket);
  CHECK(view.problem == rpc::BucketProblem::Unknown);
  CHECK(view.replica_set.nodes == world.ideal(kBucket));
  REQUIRE(view.replicas.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const rpc::BucketReplica& replica = view.replicas[i];
    CHECK(replica.node == world.ideal(kBucket)[i]);
    CHECK(replica.role == rpc::ReplicaRole::Member);
    CHECK(replica.status);
    CHECK(replica.info.entries == 1);
    CHECK(replica.document);
    CHECK(replica.timestamp_us == version);
    CHECK(replica.checksum == view.replicas[0].checksum);
    CHECK(replica.replica_set == view.replica_set);
  }
  const std::uint16_t other = world.ideal(kBucket)[1];
  const std::uint16_t stray = without_replica(world);
  world.storage[stray][kBucket.raw()] = world.storage[other][kBucket.raw()];
  world.storage[other][kBucket.raw()].documents[kId].body += "x";
  world.storage[stray][kBucket.raw()].documents[kId].removed = true;
  reply = show(world);
  CHECK(of_node(reply, other).checksum != of_node(reply, world.ideal(kBucket)[0]).checksum);
  CHECK(of_node(reply, stray).role == rpc::ReplicaRole::Unlisted);
  CHECK(of_node(reply, stray).document.code() == StatusCode::NotFound);
  CHECK(of_node(reply, stray).timestamp_us == version);

  const rpc::ShowBucketReply by_bucket = show(world, false);
  CHECK(by_bucket.buckets.size() == 1);
  CHECK(of_node(by_bucket, other).timestamp_us == 0);
}

TEST_CASE("show bucket: says which replica does not answer, and what is out of order") {
  DistributorWorld world(3, 2);
  world.give_state(1);
  CHECK(show(world).status.code() == StatusCode::NotReady);
  REQUIRE(put(world, "v").status);
  const std::uint16_t other = world.ideal(kBucket)[1];
  world.mute[other] = true;
  rpc::ShowBucketReply reply = show(world);
  CHECK(of_node(reply, other).status.code() == StatusCode::Unavailable);
  CHECK(of_node(reply, other).document.code() == StatusCode::Unavailable);
  CHECK(of_node(reply, world.ideal(kBucket)[0]).document);
  world.mute[other] = false;

  // The node answers like one that is catching up.
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "merges never end here"));
  };
  const std::uint16_t filled = without_replica(world);
  world.set_redundancy(3);
  world.give_state(2);
  world.run(seconds(1));
  reply = show(world);
  CHECK(of_node(reply, filled).role == rpc::ReplicaRole::CatchingUp);
  CHECK(reply.buckets[0].problem == rpc::BucketProblem::OutOfSync);
  CHECK(get_at(world, filled).status.code() == StatusCode::NotFound);

  rpc::ShowBucket wide;
  CHECK(world.ask(wide).status.code() == StatusCode::InvalidArgument);
  wide.id = "no id";
  CHECK(world.ask(wide).status.code() == StatusCode::InvalidId);
}

TEST_CASE("show bucket: a surplus replica is obsolete until it is merged and deleted") {
  DistributorWorld world(3, 2);
  world.give_state(1);
  REQUIRE(put(world, "v").status);
  const std::uint16_t surplus = without_replica(world);
  world.storage[surplus][kBucket.raw()] = world.storage[world.ideal(kBucket)[0]][kBucket.raw()];
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "merges never end here"));
  };
  world.restart();
  world.give_state(2);
  world.run(seconds(1));
  CHECK(of_node(show(world), surplus).role == rpc::ReplicaRole::Obsolete);
  world.hook = nullptr;
  world.run(seconds(2));
  CHECK_FALSE(world.holds(surplus, kBucket));
}

}  // namespace fjord::test
