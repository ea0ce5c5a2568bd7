// Storage nodes with full disks beside others with space (docs/design/0014-full-disks.md).

#include <algorithm>
#include <catch2/catch.hpp>

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const BucketId kBucket = bucket_of_id(kId);
bool same_members(std::vector<std::uint16_t> a, std::vector<std::uint16_t> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}
constexpr const char* kReason = "96.0 % used; storage.space_refuse_external_percent is 95";
constexpr std::uint16_t kNormal = 1;
constexpr std::uint16_t kWarns = 2;
constexpr std::uint16_t kRefusesClients = 4;
constexpr std::uint16_t kRefusesAll = 5;

/// Storage nodes that report how full they are, and refuse writes that do not fit.
struct SpaceWorld : DistributorWorld {
  explicit SpaceWorld(std::uint16_t nodes, unsigned redundancy = 2) : DistributorWorld(nodes, redundancy) {
    hook = [this](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
      if (auto* question = std::get_if<rpc::GetBucketInfo>(&request); question != nullptr && question->only_damaged) {
        rpc::GetBucketInfoReply reply;
        reply.space_stage = stage[node];
        if (stage[node] > kNormal) reply.space_reason = kReason;
        return Result<rpc::Reply>(rpc::Reply(std::move(reply)));
      }
      if (auto* batch = std::get_if<rpc::Apply>(&request); batch != nullptr && refuses(node, *batch)) {
        rpc::ApplyReply reply;
        for (std::size_t i = 0; i < batch->operations.size(); ++i) {
          reply.results.emplace_back().status =
              Status(StatusCode::NoSpace, "storage." + std::to_string(node) + " is full");
        }
        return Result<rpc::Reply>(rpc::Reply(std::move(reply)));
      }
      if (const auto* merge = std::get_if<rpc::MergeBucket>(&request)) {
        if (merge->bucket == kBucket) merges.push_back(node);
        if (stage[node] >= kRefusesAll && lacks[node]) {
          return Result<rpc::Reply>(rpc::error_reply(request, Status(StatusCode::NoSpace, "no merge fits")));
        }
      }
      return std::nullopt;
    };
  }
  bool refuses(std::uint16_t node, const rpc::Apply& batch) const {
    for (const rpc::StorageOperation& operation : batch.operations) {
      if (operation.kind != rpc::OperationKind::Put) continue;
      if (stage[node] >= (operation.is_elsewhere ? kRefusesAll : kRefusesClients)) return true;
    }
    return false;
  }
  rpc::OperationResult execute(rpc::Execute batch) {
    rpc::ExecuteReply reply = ask(std::move(batch));
    REQUIRE(reply.status);
    REQUIRE(reply.results.size() == 1);
    return std::move(reply.results[0]);
  }
  /// Waits until the distributor knows how full the nodes are. It asks each second.
  void let_know() { run(milliseconds(1100)); }
  std::uint64_t version(std::uint16_t node) { return storage[node][kBucket.raw()].documents[kId].timestamp_us; }

  std::vector<std::uint16_t> stage = std::vector<std::uint16_t>(16, kNormal);
  std::vector<bool> lacks = std::vector<bool>(16);
  std::vector<std::uint16_t> merges;
};

}  // namespace

TEST_CASE("space: a put whose replica set has a full member is refused with the reason, and stored nowhere") {
  SpaceWorld world(2);
  world.give_state(1);
  REQUIRE(world.execute(put_batch(kId)).status);
  const std::uint64_t before = world.version(0);
  world.stage[1] = kRefusesClients;
  world.let_know();
  const rpc::OperationResult put = world.execute(put_batch(kId, 0, 1, "no"));
  CHECK(put.status.code() == StatusCode::NoSpace);
  CHECK_THAT(put.status.message(), Catch::Contains("storage.1") && Catch::Contains("96.0 % used") &&
                                       Catch::Contains("storage.space_refuse_external_percent is 95"));
  CHECK(put.status.setting() == "storage.space_refuse_external_percent");
  CHECK(put.status.limit() == "95");
  CHECK(put.status.details().node == "storage.1");
  const rpc::OperationResult update = world.execute(update_batch(kId, R"({"value": {"assign": "no"}})"));
  CHECK(update.status.code() == StatusCode::NoSpace);
  CHECK(world.version(0) == before);
  CHECK(world.version(1) == before);
  CHECK(world.execute(get_batch(kId)).status);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);

  CHECK(world.execute(batch_of(rpc::OperationKind::Remove, kId)).status);
  world.stage[1] = kNormal;
  world.let_know();
  CHECK(world.execute(put_batch(kId, 0, 1, "yes")).status);
  CHECK(world.version(0) == world.version(1));
}

TEST_CASE("space: a put that meets a member which has just become full is finished there, and the next one refused") {
  SpaceWorld world(2);
  world.give_state(1);
  REQUIRE(world.execute(put_batch(kId)).status);
  world.stage[1] = kRefusesClients;  // The distributor does not know this stage yet.
  const rpc::OperationResult first = world.execute(put_batch(kId, 0, 1, "first"));
  CHECK(first.status);
  CHECK(world.version(0) == first.timestamp_us);
  CHECK(world.version(1) == first.timestamp_us);
  CHECK(world.execute(put_batch(kId, 0, 1, "second")).status.code() == StatusCode::NoSpace);
  CHECK(world.version(0) == first.timestamp_us);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("space: the record of a job is written on a node that refuses puts") {
  const std::string record = "id:fjord:fjord_job:n=1:x";
  const auto put = [&](const std::string& owner) {
    rpc::Execute batch = put_batch(record);
    batch.operations[0].json = R"({"owner": ")" + owner + R"("})";
    return batch;
  };
  SpaceWorld world(2);
  world.give_state(1);
  REQUIRE(world.execute(put("a")).status);
  world.stage[1] = kRefusesClients;
  world.let_know();
  CHECK(world.execute(put("b")).status);
  CHECK(world.execute(update_batch(record, R"({"owner": {"assign": "c"}})")).status);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("space: only a put that meets a member which has just become full to the brim is in doubt") {
  SpaceWorld world(2);
  world.give_state(1);
  REQUIRE(world.execute(put_batch(kId)).status);
  world.stage[1] = kRefusesAll;
  world.lacks[1] = true;
  CHECK(world.execute(put_batch(kId, 0, 1, "half")).status.code() == StatusCode::Timeout);
  world.let_know();
  const rpc::GetBucketNodesReply readers =
      world.ask(rpc::GetBucketNodes{.state_version = 1, .all = false, .buckets = {kBucket}});
  CHECK_THAT(
      readers.buckets.at(0).status.to_string(),
      Catch::Contains("NOT_READY") && Catch::Contains("the last merge failed: storage.1: NO_SPACE: no merge fits"));
  CHECK(world.execute(put_batch(kId, 0, 1, "no")).status.code() == StatusCode::NoSpace);
  CHECK(world.execute(get_batch(kId)).status);
  world.stage[1] = kNormal;
  world.run(seconds(3));
  CHECK(world.version(0) == world.version(1));
  CHECK(world.execute(put_batch(kId, 0, 1, "yes")).status);
}

TEST_CASE("space: an update that was applied before the node became full is recognised by its token") {
  SpaceWorld world(2);
  world.give_state(1);
  REQUIRE(world.execute(put_batch(kId)).status);
  const std::string changes = R"({"count": {"increment": 1}})";
  const rpc::OperationResult first = world.execute(update_batch(kId, changes, "token-of-sixteen"));
  REQUIRE(first.status);
  world.stage[0] = kRefusesClients;
  world.let_know();
  const rpc::OperationResult again = world.execute(update_batch(kId, changes, "token-of-sixteen"));
  CHECK(again.status);
  CHECK(again.timestamp_us == first.timestamp_us);
}

TEST_CASE("space: nothing is moved onto a node that warns, and a missing replica is made there") {
  SpaceWorld world(3);
  const std::string nodes = " .0.v:1 .1.v:1 .2.v:1";
  world.give_state(1, nodes);
  const std::vector<std::uint16_t> want = world.ideal(kBucket);
  const auto other = static_cast<std::uint16_t>(3 - want[0] - want[1]);
  const bool is_short = GENERATE(false, true);
  CAPTURE(is_short);
  const std::vector<std::uint16_t> have =
      is_short ? std::vector<std::uint16_t>{want[0]} : std::vector<std::uint16_t>{want[0], other};
  for (std::uint16_t node : have) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), have};
    replica.documents[kId] = {100, false, "", "old"};
  }
  world.stage[want[1]] = kWarns;
  REQUIRE(world.tunables().set("maintenance.paused", 1).is_ok());  // No merge until the distributor knows the space.
  world.give_state(2, nodes);
  world.let_know();
  REQUIRE(world.tunables().set("maintenance.paused", 0).is_ok());
  world.run(seconds(4));
  if (is_short) {
    CHECK(same_members(world.set_at(want[0], kBucket).nodes, want));
    return;
  }
  CHECK(world.merges.empty());
  CHECK(same_members(world.set_at(want[0], kBucket).nodes, have));
  CHECK(world.execute(put_batch(kId)).status);
  CHECK(world.execute(update_batch(kId, R"({"value": {"assign": "x"}})")).status);
  world.stage[want[1]] = kNormal;
  world.run(seconds(4));
  CHECK(same_members(world.set_at(want[0], kBucket).nodes, want));
  CHECK(world.version(want[1]) == world.version(want[0]));
}

TEST_CASE("space: members that differ are brought in sync while a replica for which there is no space waits") {
  SpaceWorld world(3);
  const std::string nodes = " .0.v:1 .1.v:1 .2.v:1";
  world.give_state(1, nodes);
  const std::vector<std::uint16_t> want = world.ideal(kBucket);
  const auto other = static_cast<std::uint16_t>(3 - want[0] - want[1]);
  const std::vector<std::uint16_t> have = {want[0], other};
  for (std::uint16_t node : have) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), have};
    replica.documents[kId] = {node == other ? 100U : 50U, false, "", "old"};
  }
  world.stage[want[1]] = kRefusesAll;
  world.lacks[want[1]] = true;
  world.give_state(2, nodes);
  world.run(seconds(3));
  CHECK(same_members(world.set_at(want[0], kBucket).nodes, have));
  CHECK(world.version(want[0]) == 100);
  CHECK(world.execute(put_batch(kId)).status);
  CHECK(world.execute(update_batch(kId, R"({"value": {"assign": "x"}})")).status);
  const std::size_t merges = world.merges.size();
  world.run(seconds(3));
  CHECK(world.merges.size() == merges);  // The distributor starts no merge that cannot succeed.
}

namespace {

/// A world of two nodes, of which the second was in maintenance and is back with a full disk.
struct Returned {
  explicit Returned(std::uint16_t stage, const std::string& put_meanwhile) : world(2) {
    const std::string nodes = " .0.v:1 .1";
    world.state_keys = " copies:2";
    world.give_state(1, nodes + ".v:1");
    REQUIRE(world.execute(put_batch(kId)).status);
    world.give_state(2, nodes + ".s:m");
    world.run(seconds(2));
    REQUIRE(same_members(world.set_at(0, kBucket).nodes, {0}));
    if (!put_meanwhile.empty()) REQUIRE(world.execute(put_batch(kId, 0, 1, put_meanwhile)).status);
    world.stage[1] = world.space_stage[1] = stage;
    world.lacks[1] = !put_meanwhile.empty();
    world.give_state(3, nodes + ".v:3");
    world.run(seconds(4));
  }
  bool is_member() { return same_members(world.set_at(0, kBucket).nodes, {0, 1}); }

  SpaceWorld world;
};

constexpr std::uint16_t kThrottles = 3;

}  // namespace

TEST_CASE("space: a node that is back from maintenance and lacks nothing is a member, however full its disk is") {
  Returned returned(GENERATE(kThrottles, kRefusesClients, kRefusesAll), "");
  CHECK(returned.is_member());
  const rpc::PollReply said = returned.world.ask(rpc::Poll{});
  CHECK(said.buckets_under_replicated == 0);
  CHECK(said.buckets_out_of_sync == 0);
}

TEST_CASE("space: a node that is back from maintenance and lacks little is a member while merges fit on its disk") {
  const std::uint16_t stage = GENERATE(kThrottles, kRefusesClients, kRefusesAll);
  Returned returned(stage, "meanwhile");
  CHECK(returned.is_member() == (stage != kRefusesAll));
  if (stage == kRefusesAll) {
    const std::size_t merges = returned.world.merges.size();
    returned.world.run(seconds(3));
    CHECK(returned.world.merges.size() == merges);  // The distributor starts no merge that cannot succeed.
  }
}

TEST_CASE("space: a node that is back from maintenance and lacks much is filled when it has space") {
  Returned returned(kThrottles, std::string(2 << 20, 'x'));
  CHECK_FALSE(returned.is_member());
  returned.world.stage[1] = returned.world.space_stage[1] = kNormal;
  returned.world.run(seconds(4));
  CHECK(returned.is_member());
}

TEST_CASE("space: a full member that is to go does not hold up its own evacuation") {
  SpaceWorld world(3);
  const std::string nodes = " .0.v:1 .1.v:1 .2.v:1";
  world.give_state(1, nodes);
  const std::vector<std::uint16_t> all = world.ideal(kBucket);
  const auto other = static_cast<std::uint16_t>(3 - all[0] - all[1]);
  const std::uint16_t full = all[0];
  // Makes the full member lack a version that the other member has.
  for (std::uint16_t node : all) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), all};
    replica.documents[kId] = {node == full ? 50U : 100U, false, "", "old"};
  }
  world.stage[full] = kRefusesAll;
  world.lacks[full] = true;
  world.give_state(2, nodes + " ." + std::to_string(full) + ".s:r");
  world.run(seconds(4));
  CHECK(same_members(world.set_at(all[1], kBucket).nodes, {all[1], other}));
  CHECK(world.version(other) == 100);
  CHECK_FALSE(world.holds(full, kBucket));
}

TEST_CASE("priority: a bucket that waits to be moved and then differs is merged at once, also while moves are paused") {
  SpaceWorld world(3);
  const std::string nodes = " .0.v:1 .1.v:1 .2.v:1";
  world.give_state(1, nodes);
  const std::vector<std::uint16_t> want = world.ideal(kBucket);
  const auto other = static_cast<std::uint16_t>(3 - want[0] - want[1]);
  const std::vector<std::uint16_t> have = {want[0], other};
  for (std::uint16_t node : have) {
    TestReplica& replica = world.storage[node][kBucket.raw()];
    replica.set = {ReplicaSet::make_epoch(1, 1), have};
    replica.documents[kId] = {100, false, "", "old"};
  }
  REQUIRE(world.tunables().set("maintenance.paused", 1).is_ok());
  world.give_state(2, nodes);
  world.run(seconds(1));
  REQUIRE(world.merges.empty());
  world.mute[other] = true;  // The next put is in doubt: the members may differ from then on.
  rpc::Execute put = put_batch(kId);
  put.timeout_us = 150'000;
  CHECK(world.execute(std::move(put)).status.code() == StatusCode::Timeout);
  world.mute[other] = false;
  CHECK(world.execute(update_batch(kId, R"({"value": {"assign": "x"}})")).status);
  CHECK_FALSE(world.merges.empty());
  CHECK(world.version(want[0]) == world.version(other));
}

TEST_CASE("priority: an operation that waits for a merge which fails says why at its deadline") {
  SpaceWorld world(2);
  world.give_state(1);
  REQUIRE(world.execute(put_batch(kId)).status);
  world.stage[1] = kRefusesAll;
  world.lacks[1] = true;
  CHECK(world.execute(put_batch(kId, 0, 1, "half")).status.code() == StatusCode::Timeout);
  world.run(milliseconds(300));
  const rpc::OperationResult update = world.execute(update_batch(kId, R"({"value": {"assign": "x"}})"));
  CHECK(update.status.code() == StatusCode::Unavailable);
  CHECK_THAT(update.status.message(), Catch::Contains("brought in sync") && Catch::Contains("storage.1: NO_SPACE"));
}

}  // namespace fjord::test
