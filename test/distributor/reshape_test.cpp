// Splits and joins of buckets while they are served.

#include <set>

#include "bucket_database.h"
#include "distributor_world.h"

namespace fjord::test {
namespace {

constexpr unsigned kBits = 1;

rpc::OperationResult execute(DistributorWorld& world, rpc::Execute batch) {
  return std::move(world.ask(std::move(batch)).results.at(0));
}

/// Returns ids of bucket `of`, half of them in each of its halves.
std::vector<std::string> ids_of(BucketId of, std::size_t count) {
  std::vector<std::string> ids[2];
  for (int i = 0; ids[0].size() < count / 2 || ids[1].size() < count / 2; ++i) {
    std::string id = "id:t:item::" + std::to_string(i);
    const BucketId half = bucket_of_id(id, of.used_bits() + 1);
    if (of.contains(half)) ids[half == halves_of(of)[1] ? 1 : 0].push_back(id);
  }
  ids[0].resize(count / 2);
  ids[1].resize(count / 2);
  ids[0].insert(ids[0].end(), ids[1].begin(), ids[1].end());
  return ids[0];
}

std::vector<BucketId> buckets_at(const DistributorWorld& world, std::uint16_t node) {
  std::vector<BucketId> found;
  for (const auto& [raw, replica] : world.storage[node]) found.push_back(BucketId(raw));
  return found;
}

const BucketId kBucket(kBits, 0);
const auto kHalves = halves_of(kBucket);

/// A bucket with four documents on two nodes, split if it has more than `limit` documents.
struct ReshapeWorld : DistributorWorld {
  explicit ReshapeWorld(std::int64_t limit, std::uint16_t nodes = 2) : DistributorWorld(nodes, 2, kBits) {
    REQUIRE(tunables().set("distributor.bucket_entries_max", limit).is_ok());
    std::string up;
    for (std::uint16_t i = 0; i < nodes; ++i) up += " ." + std::to_string(i) + ".v:1";
    give_state(1, up);
    for (const std::string& id : ids) REQUIRE(execute(*this, put_batch(id)).status);
  }
  void check_all_there() {
    for (const std::string& id : ids) CHECK(execute(*this, get_batch(id)).status);
  }
  std::vector<std::string> ids = ids_of(kBucket, 4);
};

}  // namespace

TEST_CASE("distributor: a bucket above the limit is split on all replicas, and operations go on") {
  ReshapeWorld world(3);
  world.run(seconds(3));
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    CHECK_FALSE(world.holds(node, kBucket));
    for (BucketId half : kHalves) {
      REQUIRE(world.holds(node, half));
      CHECK(world.set_at(node, half).nodes == world.ideal(half));
      CHECK(world.set_at(node, half) == world.set_at(1 - node, half));
    }
  }
  world.check_all_there();
  CHECK(execute(world, put_batch(world.ids[0], 0, 1, "after")).status);
  CHECK(execute(world, get_batch(world.ids[0])).json.find("after") != std::string::npos);
  CHECK(world.counter("fjord_distributor_bucket_splits_total") == 1);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("distributor: a bucket whose documents would stay together is not split, however often it is looked at") {
  ReshapeWorld world(1000);
  const std::string base = "id:t:item:n=";
  int number = 0;
  const auto is_inside = [&] { return kBucket.contains(bucket_of_id(base + std::to_string(number) + ":0", 32)); };
  while (!is_inside()) ++number;
  const std::string location = base + std::to_string(number) + ":";
  for (const std::string& id : world.ids) {
    REQUIRE(execute(world, batch_of(rpc::OperationKind::Remove, id)).status);
    for (TestReplica* replica : {&world.storage[0][kBucket.raw()], &world.storage[1][kBucket.raw()]}) {
      replica->documents.erase(id);  // The engine seems to have dropped the remove entries.
    }
  }
  for (int i = 0; i < 8; ++i) REQUIRE(execute(world, put_batch(location + std::to_string(i))).status);
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 4).is_ok());
  world.run(seconds(60));
  CHECK(world.holds(0, kBucket));
  CHECK(world.counter("fjord_distributor_bucket_splits_total") == 0);
  CHECK(world.transport.sent_of<rpc::ListEntries>().size() <= 2);

  // With documents of another location a split helps. The distributor tries it, because the bucket has changed.
  const BucketId half = bucket_of_id(location + "0", kBits + 1);
  int other = 0;
  for (int i = 0; i < 4; ++other) {
    const std::string id = "id:t:item::" + std::to_string(other);
    const BucketId there = bucket_of_id(id, kBits + 1);
    if (!kBucket.contains(there) || there == half) continue;
    REQUIRE(execute(world, put_batch(id)).status);
    ++i;
  }
  world.run(seconds(60));
  CHECK_FALSE(world.holds(0, kBucket));
  CHECK(world.holds(1, half));
  CHECK(world.counter("fjord_distributor_bucket_splits_total") == 1);
  CHECK(world.counter("fjord_distributor_bucket_joins_total") == 0);

  // A location far above the limit is split until the hashes of its documents separate them.
  for (int i = 8; i < 80; ++i) REQUIRE(execute(world, put_batch(location + std::to_string(i))).status);
  world.run(seconds(120));
  for (const auto& [raw, replica] : world.storage[0]) {
    if (replica.info().entries <= 4) continue;
    // A bucket above the limit has, by chance, few documents and all of them in one half.
    INFO(BucketId(raw) << " has " << replica.info().entries);
    CHECK(replica.info().entries <= 8);
    std::set<BucketId> halves;
    for (const auto& [id, version] : replica.documents) {
      if (version.timestamp_us != 0) halves.insert(bucket_of_id(id, BucketId(raw).used_bits() + 1));
    }
    CHECK(halves.size() == 1);
  }
  const std::uint64_t splits = world.counter("fjord_distributor_bucket_splits_total");
  CHECK(splits >= 32 - kBits + 16);
  world.run(seconds(60));
  CHECK(world.counter("fjord_distributor_bucket_splits_total") == splits);
  CHECK(world.counter("fjord_distributor_bucket_joins_total") == 0);
  for (int i = 0; i < 80; ++i) CHECK(execute(world, get_batch(location + std::to_string(i))).status);
}

TEST_CASE("distributor: one document that is as large as a bucket may be is not split from its tokens") {
  ReshapeWorld world(1000);
  const std::string& kept = world.ids[0];
  for (auto& node : world.storage) {
    TestReplica& replica = node[kBucket.raw()];
    std::erase_if(replica.documents, [&](const auto& item) { return item.first != kept; });
    replica.tokens[DocumentId::parse(kept)->gid()] = {"token", 7};
  }
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* question = std::get_if<rpc::GetBucketInfo>(&request);
    if (question == nullptr || !question->only_damaged) return std::nullopt;
    rpc::GetBucketInfoReply reply;
    for (const auto& [raw, replica] : world.storage[node]) {
      if (replica.documents.empty()) continue;
      rpc::BucketReport report{BucketId(raw), replica.info(), replica.set, false};
      report.info.entries = 2;
      report.info.bytes = question->bytes_limit * 1000;
      reply.reports.push_back(report);
    }
    return Result<rpc::Reply>(std::move(reply));
  };
  world.run(seconds(60));
  CHECK(world.holds(0, kBucket));
  CHECK(world.counter("fjord_distributor_bucket_splits_total") == 0);
}

TEST_CASE("distributor: if a replica cannot say how the entries of a large bucket lie it is asked again") {
  ReshapeWorld world(3);
  int asked = 0;
  world.hook = [&](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::ListEntries>(request) || ++asked > 5) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "said the test"));
  };
  world.run(seconds(10));
  CHECK(asked > 5);
  CHECK_FALSE(world.holds(0, kBucket));
}

TEST_CASE("distributor: a split waits for the writes under way, and later ones wait for it") {
  ReshapeWorld world(3);
  world.mute[1] = true;
  auto under_way = world.send(put_batch(world.ids[0], 1, 1, "slow"));
  world.run(milliseconds(1500));
  CHECK(world.transport.sent_of<rpc::SplitBucket>().empty());
  auto later = world.send(put_batch(world.ids[1], 2, 1, "later"));
  world.run(milliseconds(10));
  world.mute[1] = false;
  world.run(seconds(2));
  REQUIRE(under_way->has_value());
  REQUIRE(later->has_value());
  CHECK((*under_way)->results.at(0).status);
  CHECK((*later)->results.at(0).status);
  CHECK_FALSE(world.holds(0, kBucket));
  CHECK(execute(world, get_batch(world.ids[0])).json.find("slow") != std::string::npos);
  CHECK(execute(world, get_batch(world.ids[1])).json.find("later") != std::string::npos);
}

TEST_CASE("distributor: splits that are given up after failed writes make room for those that wait") {
  constexpr unsigned kMoreBits = 3;
  DistributorWorld world(2, 2, kMoreBits);
  world.give_state(1);
  std::vector<std::vector<std::string>> ids;
  for (std::uint64_t i = 0; i < 5; ++i) ids.push_back(ids_of(BucketId(kMoreBits, i), 4));
  const std::vector<std::string> last = ids.back();
  ids.pop_back();
  std::set<std::string> lost;
  for (const auto& of_bucket : ids) {
    for (const std::string& id : of_bucket) REQUIRE(execute(world, put_batch(id)).status);
    lost.insert(of_bucket[0]);
  }
  world.hook = [&](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* apply = std::get_if<rpc::Apply>(&request);
    const bool is_lost = apply != nullptr && std::any_of(apply->operations.begin(), apply->operations.end(),
                                                         [&](const auto& one) { return lost.contains(one.id); });
    if (!is_lost && !std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  // Starts as many splits as may be in progress at once. They wait for writes that will fail.
  for (const std::string& id : lost) {
    rpc::Execute batch = put_batch(id);
    batch.timeout_us = 10'000'000;
    world.send(std::move(batch));
  }
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 3).is_ok());
  world.run(seconds(3));
  for (const std::string& id : last) REQUIRE(execute(world, put_batch(id)).status);
  world.run(seconds(4));
  CHECK(world.transport.sent_of<rpc::SplitBucket>().empty());
  world.run(seconds(6));
  CHECK_FALSE(world.holds(0, BucketId(kMoreBits, 4)));
  for (std::uint64_t i = 0; i < 4; ++i) CHECK(world.holds(0, BucketId(kMoreBits, i)));
  CHECK(world.counter("fjord_distributor_bucket_splits_total") == 1);
}

TEST_CASE("distributor: a split that reached one replica only is finished by whoever recovers the bucket") {
  ReshapeWorld world(1000);
  world.split_at(0, kBucket);
  REQUIRE(world.holds(1, kBucket));
  world.give_state(3, " .0.v:1 .1.v:1");  // A state was skipped, so the distributor asks about all buckets again.
  world.check_all_there();
  world.run(seconds(1));
  CHECK(buckets_at(world, 0) == buckets_at(world, 1));
  CHECK_FALSE(world.holds(1, kBucket));
}

TEST_CASE("distributor: a bucket and parts of it on one node become parts that exist once") {
  ReshapeWorld world(1000);
  const BucketId half = kHalves[0];
  for (BucketId bucket : {kBucket, half, halves_of(half)[0], halves_of(half)[1]}) world.split_at(0, bucket);
  // Node 1 has a state that a power loss can leave after the same splits.
  auto& torn = world.storage[1];
  const TestReplica whole = torn[kBucket.raw()];
  for (BucketId part : {half, halves_of(half)[0], halves_of(half)[1]}) {
    torn[part.raw()].set = whole.set;
    torn[part.raw()].set.epoch += 1;
  }
  world.give_state(3, " .0.v:1 .1.v:1");  // A state was skipped, so the distributor asks about all buckets again.
  world.run(seconds(1));
  world.check_all_there();
  world.run(seconds(2));
  CHECK(buckets_at(world, 0) == buckets_at(world, 1));
  for (BucketId wide : {kBucket, half, halves_of(half)[0], halves_of(half)[1]}) CHECK_FALSE(world.holds(1, wide));
}

TEST_CASE("distributor: a node that slept through a split has its replica split before it is merged") {
  ReshapeWorld world(3, 3);
  world.run(seconds(3));
  const std::vector<std::uint16_t> members = world.ideal(kHalves[0]);
  const auto other = static_cast<std::uint16_t>(3 - members[0] - members[1]);
  TestReplica& old = world.storage[other][kBucket.raw()];
  old.set = {ReplicaSet::make_epoch(1, 1), {other}};
  old.documents[world.ids[0]].timestamp_us = 1;
  world.give_state(2, " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(other) + ".v:2");
  world.run(seconds(3));
  CHECK(buckets_at(world, other).empty());
  world.check_all_there();
}

TEST_CASE("distributor: siblings that became small are joined on all replicas") {
  ReshapeWorld world(3);
  world.run(seconds(3));
  REQUIRE(world.holds(0, kHalves[0]));
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    world.storage[node][kHalves[1].raw()].set.epoch = ReplicaSet::make_epoch(2, 7);
  }
  world.give_state(2, " .0.v:2 .1.v:2");
  world.check_all_there();
  REQUIRE(world.set_at(0, kHalves[0]).epoch != world.set_at(0, kHalves[1]).epoch);
  // A half can only be recovered if both halves have the same newest set.
  int joins = 0;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::JoinBuckets>(request)) return std::nullopt;
    ++joins;
    CHECK(world.set_at(node, kHalves[0]).epoch == world.set_at(node, kHalves[1]).epoch);
    return std::nullopt;
  };
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 1000).is_ok());
  world.run(seconds(40));
  CHECK(joins == 2);
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    CHECK_FALSE(world.holds(node, kHalves[0]));
    REQUIRE(world.holds(node, kBucket));
    CHECK(world.set_at(node, kBucket).nodes == world.ideal(kBucket));
  }
  world.check_all_there();
  CHECK(execute(world, put_batch(world.ids[0], 0, 1, "after")).status);
  CHECK(world.counter("fjord_distributor_bucket_joins_total") == 1);
}

TEST_CASE("distributor: a write after a join is newer than every write before it, in whichever half that was") {
  const std::size_t newer = GENERATE(std::size_t{0}, std::size_t{1});
  ReshapeWorld world(3);
  world.run(seconds(3));
  REQUIRE(world.holds(0, kHalves[newer]));
  const std::string& id = world.ids[2 * newer];
  world.clock.jump_wall(seconds(500));
  const rpc::OperationResult ahead = execute(world, put_batch(id));
  REQUIRE(ahead.status);
  world.clock.jump_wall(-seconds(500));
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 1000).is_ok());
  world.run(seconds(40));
  REQUIRE(world.holds(0, kBucket));
  const rpc::OperationResult after = execute(world, put_batch(id));
  REQUIRE(after.status);
  CHECK(after.timestamp_us > ahead.timestamp_us);
}

TEST_CASE("distributor: a join that reached one replica only is undone by whoever recovers the bucket") {
  ReshapeWorld world(3);
  world.run(seconds(3));
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 1000).is_ok());
  world.hook = [](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != 1 || !std::holds_alternative<rpc::JoinBuckets>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "said the test"));
  };
  world.run(seconds(32));
  REQUIRE(world.holds(0, kBucket));
  REQUIRE(world.holds(1, kHalves[0]));
  world.hook = nullptr;
  world.give_state(2, " .0.v:1 .1.v:1");
  world.check_all_there();
  world.run(seconds(1));
  CHECK(buckets_at(world, 0) == buckets_at(world, 1));
  CHECK(world.holds(0, kHalves[0]));
}

TEST_CASE("distributor: buckets are split ahead of a state with more distribution bits") {
  ReshapeWorld world(1000);
  REQUIRE(world
              .poll([](rpc::Poll& request) {
                request.info.config_version = 1;
                request.info.config = {"cluster.redundancy=2", "cluster.distribution_bits=3"};
              })
              .status);
  world.run(seconds(5));
  for (std::uint16_t node : {std::uint16_t{0}, std::uint16_t{1}}) {
    for (BucketId bucket : buckets_at(world, node)) CHECK(bucket.used_bits() == 3);
  }
  CHECK(world.storage[0].size() == 8);
  world.check_all_there();
}

TEST_CASE("distributor: nothing is split or moved while an operator has paused it, and missing replicas are made") {
  ReshapeWorld world(3, 3);
  REQUIRE(world.tunables().set("maintenance.paused", 1).is_ok());
  world.run(seconds(3));
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  CHECK(world.holds(members[0], kBucket));
  const std::string state = " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(members[0]);
  world.give_state(2, state + ".s:r");
  world.run(seconds(3));
  CHECK(world.holds(members[0], kBucket));  // The node is retired, but its replica stays.
  world.give_state(3, state + ".s:d");
  world.run(seconds(3));
  const auto other = static_cast<std::uint16_t>(3 - members[0] - members[1]);
  CHECK(world.set_at(other, kBucket).contains(other));
  world.check_all_there();
  REQUIRE(world.tunables().set("maintenance.paused", 0).is_ok());
  world.run(seconds(3));
  CHECK_FALSE(world.holds(other, kBucket));
  CHECK(world.holds(other, kHalves[0]));
}

TEST_CASE("distributor: a bucket is not split before its surplus replicas are deleted") {
  ReshapeWorld world(1000, 3);  // The simulation found this bug: updates, seed 35.
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  const std::string state = " .0.v:1 .1.v:1 .2.v:1 ." + std::to_string(members[0]);
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::DeleteBuckets>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "said the test"));
  };
  world.give_state(2, state + ".s:r");
  world.run(seconds(2));
  REQUIRE(world.holds(members[0], kBucket));
  REQUIRE(world.tunables().set("distributor.bucket_entries_max", 3).is_ok());
  world.run(seconds(3));
  CHECK(world.transport.sent_of<rpc::SplitBucket>().empty());
  world.hook = nullptr;
  world.run(seconds(3));
  CHECK_FALSE(world.holds(members[0], kBucket));
  CHECK_FALSE(world.holds(members[1], kBucket));
  CHECK(world.holds(members[1], kHalves[0]));
}

TEST_CASE("distributor: visitors are sent to a node that holds all parts of a bucket") {
  ReshapeWorld world(3);
  world.run(seconds(3));
  rpc::GetBucketNodes all;
  all.state_version = 1;
  all.all = true;
  const rpc::GetBucketNodesReply reply = world.ask(all);
  REQUIRE(reply.status);
  CHECK(std::count_if(reply.buckets.begin(), reply.buckets.end(),
                      [](const rpc::BucketNode& one) { return one.bucket == kBucket && one.status; }) == 1);
  for (const rpc::BucketNode& one : reply.buckets) CHECK(one.bucket.used_bits() == kBits);
}

TEST_CASE("distributor: a half of a bucket that nobody ever made is made with the next cluster state") {
  ReshapeWorld world(3);
  world.run(seconds(3));
  // Looks as if one half had been made under more distribution bits, and the other half never.
  for (auto& replicas : world.storage) replicas.erase(kHalves[1].raw());
  world.give_state(2, " .0.v:1 .1.v:2");  // With this state the distributor asks about all buckets again.
  world.run(seconds(1));
  rpc::GetBucketNodes request;
  request.state_version = 2;
  request.buckets = {kBucket};
  const rpc::GetBucketNodesReply reply = world.ask(request);
  REQUIRE(reply.buckets.at(0).status);
  CHECK(world.holds(reply.buckets[0].node, kHalves[0]));
  CHECK(world.holds(reply.buckets[0].node, kHalves[1]));
}

TEST_CASE("distributor: of a bucket with fewer bits than are distributed nothing is made, for others own parts of it") {
  ReshapeWorld world(3);
  world.run(seconds(3));
  const auto before = buckets_at(world, 0);
  rpc::GetBucketNodes request;
  request.state_version = 1;
  request.buckets = {BucketId(kBits - 1, 0)};
  world.ask(request);
  world.run(seconds(1));
  CHECK(buckets_at(world, 0) == before);
}

TEST_CASE("bucket database: finds the bucket of a document among split ones, and what a new one may be") {
  distributor::BucketDatabase buckets;
  const GlobalId gid = DocumentId::parse("id:t:item::1")->gid();
  CHECK(buckets.find_for(gid) == nullptr);
  CHECK(buckets.missing_for(gid, 4) == bucket_of(gid, 4));
  const BucketId whole = bucket_of(gid, 4);
  buckets.add(whole);
  REQUIRE(buckets.find_for(gid) != nullptr);
  CHECK(buckets.find_for(gid)->bucket == whole);
  buckets.erase(whole);
  const BucketId mine = bucket_of(gid, 5);
  const BucketId other = halves_of(whole)[mine == halves_of(whole)[0] ? 1 : 0];
  buckets.add(other);
  CHECK(buckets.find_for(gid) == nullptr);
  CHECK(buckets.missing_for(gid, 4) == mine);
  CHECK(buckets.overlapping(whole) == std::vector<BucketId>{other});
  CHECK(buckets.overlapping(mine).empty());
  buckets.add(bucket_of(gid, 7));
  CHECK(buckets.find_for(gid)->bucket == bucket_of(gid, 7));
  CHECK(buckets.overlapping(bucket_of(gid, 9)) == std::vector<BucketId>{bucket_of(gid, 7)});
  CHECK(buckets.overlapping(whole).size() == 2);
}

}  // namespace fjord::test
