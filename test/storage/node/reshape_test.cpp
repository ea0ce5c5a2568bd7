// Splits and joins of buckets, in the order in which the owner requests them.

#include <catch2/catch.hpp>

#include "fjord/storage/storage_node.h"
#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

constexpr std::uint64_t kState = 4;
const BucketId kParent(3, 1);
const BucketId kLow(4, 1);
const BucketId kHigh(4, 9);
const std::string kLowId = id_in(1, 0);
const std::string kHighId = id_in(9, 0);

std::uint64_t epoch(std::uint64_t step) { return ReplicaSet::make_epoch(kState, step); }

rpc::SplitBucketReply split(NodeWorld& nodes, std::uint64_t with_epoch, BucketId bucket = kParent) {
  rpc::SplitBucket request;
  request.state_version = kState;
  request.distributor = nodes.owner(bucket);
  request.bucket = bucket;
  request.epoch = with_epoch;
  return nodes.ask(0, request);
}

rpc::JoinBucketsReply join(NodeWorld& nodes, std::uint64_t with_epoch) {
  rpc::JoinBuckets request;
  request.state_version = kState;
  request.distributor = nodes.owner(kParent);
  request.parent = kParent;
  request.epoch = with_epoch;
  return nodes.ask(0, request);
}

rpc::StorageOperation in_bucket(BucketId bucket, rpc::StorageOperation operation) {
  operation.bucket = bucket;
  return operation;
}

/// Returns the buckets that the node reports to the owner of the parent.
std::vector<BucketId> buckets(NodeWorld& nodes) {
  std::vector<BucketId> found;
  for (const auto& report : nodes.reports(0, kState, nodes.owner(kParent)).reports) found.push_back(report.bucket);
  return found;
}

/// Installs the parent with a document in each half.
NodeWorld& fill(NodeWorld& nodes) {
  nodes.give_state(kState);
  REQUIRE(nodes.install(0, kState, kParent, {epoch(2), {0, 1}}));
  REQUIRE(nodes.apply_one(0, kState, in_bucket(kParent, put_of(kLowId, 10, "low", epoch(2)))).status);
  REQUIRE(nodes.apply_one(0, kState, in_bucket(kParent, put_of(kHighId, 11, "high", epoch(2)))).status);
  return nodes;
}

}  // namespace

TEST_CASE("storage node: a split shares documents between halves that have the replica set of the bucket") {
  NodeWorld nodes(1);
  fill(nodes);
  const rpc::SplitBucketReply reply = split(nodes, epoch(2));
  REQUIRE(reply.status);
  REQUIRE(reply.reports.size() == 2);
  for (const rpc::BucketReport& report : reply.reports) {
    CHECK(report.info.entries == 1);
    CHECK(report.replica_set == ReplicaSet{epoch(2), {0, 1}});
  }
  CHECK(buckets(nodes) == std::vector<BucketId>{kLow, kHigh});
  CHECK(nodes.apply_one(0, kState, in_bucket(kHigh, get_of(kHighId, epoch(2)))).status);
  CHECK(nodes.apply_one(0, kState, in_bucket(kLow, get_of(kHighId, epoch(2)))).status.code() == StatusCode::NotFound);

  SECTION("again changes nothing") {
    const rpc::SplitBucketReply again = split(nodes, epoch(2));
    CHECK(again.status);
    CHECK(again.reports.size() == 2);
  }
  SECTION("late messages to the whole are refused and do not bring it back") {
    CHECK(nodes.apply_one(0, kState, in_bucket(kParent, get_of(kLowId, epoch(2)))).status.code() ==
          StatusCode::NotReady);
    CHECK_FALSE(nodes.install(0, kState, kParent, {epoch(3), {0}}));
    CHECK(buckets(nodes) == std::vector<BucketId>{kLow, kHigh});
  }
  SECTION("a join under the same set brings the whole back") {
    const rpc::JoinBucketsReply whole = join(nodes, epoch(2));
    REQUIRE(whole.status);
    CHECK(whole.report.info.entries == 2);
    CHECK(whole.report.replica_set == ReplicaSet{epoch(2), {0, 1}});
    CHECK(buckets(nodes) == std::vector<BucketId>{kParent});
    CHECK(join(nodes, epoch(2)).status);
    REQUIRE(nodes.install(0, kState, kParent, {epoch(5), {0}}));
    // A late duplicate of the request is refused.
    CHECK(split(nodes, epoch(2)).status.code() == StatusCode::WrongDistribution);
    CHECK(buckets(nodes) == std::vector<BucketId>{kParent});
  }
  SECTION("halves with different sets are not joined") {
    REQUIRE(nodes.install(0, kState, kLow, {epoch(3), {0}}));
    CHECK(join(nodes, epoch(3)).status.code() == StatusCode::WrongDistribution);
    CHECK(buckets(nodes) == std::vector<BucketId>{kLow, kHigh});
  }
  SECTION("halves with a newer set than the sender knows are not joined") {
    REQUIRE(nodes.install(0, kState, kLow, {epoch(3), {0}}));
    REQUIRE(nodes.install(0, kState, kHigh, {epoch(3), {0}}));
    CHECK(join(nodes, epoch(2)).status.code() == StatusCode::WrongDistribution);
    CHECK(join(nodes, epoch(3)).status);
  }
}

TEST_CASE("storage node: a bucket is split and joined by its owner under the current state only") {
  NodeWorld nodes(1);
  fill(nodes);
  rpc::SplitBucket request;
  request.state_version = kState;
  request.distributor = static_cast<std::uint16_t>(1 - nodes.owner(kParent));
  request.bucket = kParent;
  request.epoch = epoch(9);
  CHECK(nodes.ask(0, request).status.code() == StatusCode::WrongDistribution);
  request.distributor = nodes.owner(kParent);
  request.state_version = kState + 1;
  CHECK(nodes.ask(0, request).status.code() == StatusCode::NotReady);
  CHECK(split(nodes, epoch(1)).status.code() == StatusCode::WrongDistribution);
  CHECK(split(nodes, epoch(2), BucketId(3, 5)).status.code() == StatusCode::NotFound);
  CHECK(buckets(nodes) == std::vector<BucketId>{kParent});
}

TEST_CASE("storage node: who asks for a bucket is told of what it was split into, or of what it is a part of") {
  NodeWorld nodes(1);
  fill(nodes);
  const auto asked = [&](BucketId bucket) {
    rpc::GetBucketInfo request;
    request.state_version = kState;
    request.distributor = nodes.owner(kParent);
    request.buckets = {bucket};
    std::vector<BucketId> found;
    for (const rpc::BucketReport& report : nodes.ask(0, request).reports) found.push_back(report.bucket);
    return found;
  };
  CHECK(asked(kLow) == std::vector<BucketId>{kParent});
  REQUIRE(split(nodes, epoch(2)).status);
  CHECK(asked(kParent) == std::vector<BucketId>{kLow, kHigh});
  CHECK(asked(kLow) == std::vector<BucketId>{kLow});
  CHECK(asked(BucketId(3, 5)).empty());
}

TEST_CASE("storage node: under a state with more distribution bits no bucket is reported with fewer") {
  NodeWorld nodes(1);
  fill(nodes);
  CHECK(nodes.ask(0, rpc::Poll{.info = nodes.info(kState)}).min_bucket_bits == 3);
  nodes.give_state(kState + 1, 5);
  std::map<BucketId, std::uint64_t> found;
  for (std::uint16_t distributor : {std::uint16_t{0}, std::uint16_t{1}}) {
    for (const auto& report : nodes.reports(0, kState + 1, distributor).reports) {
      CHECK(report.replica_set == ReplicaSet{epoch(2), {0, 1}});
      found[report.bucket] = report.info.entries;
    }
  }
  const std::map<BucketId, std::uint64_t> expected = {
      {BucketId(5, 1), 1}, {BucketId(5, 9), 1}, {BucketId(5, 17), 0}, {BucketId(5, 25), 0}};
  CHECK(found == expected);
  CHECK(nodes.ask(0, rpc::Poll{}).min_bucket_bits == 5);
}

TEST_CASE("storage node: buckets above a limit are told with the damaged ones") {
  NodeWorld nodes(1);
  fill(nodes);
  rpc::GetBucketInfo request;
  request.state_version = kState;
  request.distributor = nodes.owner(kParent);
  request.all = true;
  request.only_damaged = true;
  CHECK(nodes.ask(0, request).reports.empty());
  request.entries_limit = 2;
  CHECK(nodes.ask(0, request).reports.empty());
  request.entries_limit = 1;
  CHECK(nodes.ask(0, request).reports.size() == 1);
  request.entries_limit = 0;
  request.bytes_limit = 1;
  CHECK(nodes.ask(0, request).reports.size() == 1);
}

}  // namespace fjord::test
