// Replicas that have lost something, or are gone although the distributor has not ordered it.

#include <catch2/catch.hpp>

#include "distributor_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:test:item:n=1:a";
const std::string kOther = "id:test:item:n=1:b";
const std::string kAbsent = "id:test:item:n=1:c";
const BucketId kBucket = bucket_of_id(kId);

rpc::OperationResult execute(DistributorWorld& world, rpc::Execute batch) {
  rpc::ExecuteReply reply = world.ask(std::move(batch));
  REQUIRE(reply.status);
  REQUIRE(reply.results.size() == 1);
  return std::move(reply.results[0]);
}
StatusCode get_code(DistributorWorld& world, const std::string& id) {
  return execute(world, get_batch(id)).status.code();
}

/// Removes kId from the node, which reports damage from then on.
void damage(DistributorWorld& world, std::uint16_t node) {
  TestReplica& replica = world.storage[node][kBucket.raw()];
  replica.documents.erase(kId);
  replica.damaged = true;
}
bool is_damaged(DistributorWorld& world, std::uint16_t node) { return world.storage[node][kBucket.raw()].damaged; }

DistributorWorld::Hook no_merges() {
  return [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::NotReady, "no merge in this test"));
  };
}

/// Fails a write on all nodes, so that the bucket is merged and its replica set installed again.
void disturb(DistributorWorld& world) {
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::Apply>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  CHECK(execute(world, put_batch(kOther)).status.code() == StatusCode::Timeout);
  world.hook = nullptr;
  const std::uint64_t epoch = world.set_at(1, kBucket).epoch;
  world.run(seconds(12));
  REQUIRE(world.set_at(1, kBucket).epoch > epoch);
}

void fill(DistributorWorld& world) {
  world.give_state(1);
  REQUIRE(execute(world, put_batch(kId)).status);
  REQUIRE(execute(world, put_batch(kOther)).status);
}

rpc::PollReply report(DistributorWorld& world) { return world.ask(rpc::Poll{}); }

}  // namespace

TEST_CASE(
    "damaged replicas: a read that meets damage is answered by another member, which the damaged one is merged from") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 1);
  for (int i = 0; i < 10; ++i) CHECK(get_code(world, kId) == StatusCode::Ok);
  CHECK(get_code(world, kAbsent) == StatusCode::NotFound);
  world.run(seconds(2));
  CHECK_FALSE(is_damaged(world, 1));
  CHECK(world.storage[1][kBucket.raw()].info().same_content(world.storage[0][kBucket.raw()].info()));
  CHECK(world.counter("fjord_distributor_damaged_replicas_total") == 1);
  CHECK(world.counter("fjord_distributor_repaired_replicas_total") == 1);
  CHECK(world.ask(rpc::Poll{}).buckets_damaged == 0);
  CHECK(world.ask(rpc::Poll{}).buckets_out_of_sync == 0);
}

TEST_CASE("damaged replicas: storage nodes are asked for them, so nobody has to read") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 0);
  world.run(seconds(3));
  CHECK_FALSE(is_damaged(world, 0));
  CHECK(world.storage[0][kBucket.raw()].documents.contains(kId));
}

TEST_CASE("damaged replicas: until they are repaired, nothing is read or visited there, and updates wait") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 1);
  world.hook = no_merges();
  world.run(seconds(2));
  CHECK(world.ask(rpc::Poll{}).buckets_damaged == 1);
  for (int i = 0; i < 10; ++i) {
    CHECK(get_code(world, kId) == StatusCode::Ok);
    rpc::GetBucketNodesReply nodes =
        world.ask(rpc::GetBucketNodes{.state_version = 1, .all = false, .buckets = {kBucket}});
    REQUIRE(nodes.buckets.at(0).status);
    CHECK(nodes.buckets.at(0).node == 0);
    CHECK_FALSE(nodes.buckets.at(0).even_damaged);
  }
  auto update = world.send(update_batch(kId, R"({"count": {"assign": 2}})"));
  world.run(milliseconds(500));
  CHECK_FALSE(update->has_value());
  CHECK(is_damaged(world, 1));
  world.hook = nullptr;
  world.run(seconds(1));
  CHECK_FALSE(is_damaged(world, 1));
  REQUIRE(update->has_value());
  CHECK((*update)->results.at(0).status);
}

TEST_CASE("damaged replicas: they are not whole while they hold something else than an intact one") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 1);
  world.hook = [](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (node != 1 || !std::holds_alternative<rpc::MergeBucket>(request)) return std::nullopt;
    return Result<rpc::Reply>(rpc::MergeBucketReply{});  // Reports success without having merged anything.
  };
  world.run(seconds(3));
  CHECK(is_damaged(world, 1));
  CHECK(world.counter("fjord_distributor_repaired_replicas_total") == 0);
  CHECK(world.counter("fjord_distributor_merge_failures_total") > 0);
  CHECK(get_code(world, kId) == StatusCode::Ok);
}

TEST_CASE("damaged replicas: without an intact one there is no repair, and what is not there is no NOT_FOUND") {
  const std::uint16_t nodes = GENERATE(as<std::uint16_t>{}, 1, 2);
  DistributorWorld world(nodes, nodes);
  fill(world);
  for (std::uint16_t node = 0; node < nodes; ++node) damage(world, node);
  world.run(seconds(3));
  CHECK(get_code(world, kId) == StatusCode::Corruption);
  CHECK(get_code(world, kAbsent) == StatusCode::Corruption);
  CHECK(get_code(world, kOther) == StatusCode::Ok);  // The distributor serves intact documents.
  CHECK(execute(world, update_batch(kId, R"({"count": {"assign": 2}})")).status.code() == StatusCode::Corruption);
  CHECK(execute(world, put_batch(kId, 0, 1, "again")).status);
  CHECK(get_code(world, kId) == StatusCode::Ok);
  for (std::uint16_t node = 0; node < nodes; ++node) CHECK(is_damaged(world, node));
  CHECK(world.ask(rpc::Poll{}).buckets_damaged == 1);
  const rpc::GetBucketNodesReply named =
      world.ask(rpc::GetBucketNodes{.state_version = 1, .all = false, .buckets = {kBucket}});
  REQUIRE(named.buckets.at(0).status);
  CHECK(named.buckets.at(0).even_damaged);
}

TEST_CASE("damaged replicas: of documents that are read together when damage is met, what verifies is served") {
  DistributorWorld world(1, 1);
  fill(world);
  damage(world, 0);
  rpc::Execute batch = get_batch(kId);
  batch.operations.push_back(get_batch(kOther).operations[0]);
  const rpc::ExecuteReply reply = world.ask(std::move(batch));
  REQUIRE(reply.results.size() == 2);
  CHECK(reply.results[0].status.code() == StatusCode::Corruption);
  CHECK(reply.results[1].status);
}

TEST_CASE("damaged replicas: what all of them have lost can be given up, and then what is left is all there is") {
  const std::uint16_t nodes = GENERATE(as<std::uint16_t>{}, 1, 2);
  DistributorWorld world(nodes, nodes);
  fill(world);
  const auto accept = [&](BucketId bucket) {
    rpc::AcceptLossReply reply = world.ask(rpc::AcceptLoss{{bucket}});
    REQUIRE(reply.status);
    REQUIRE(reply.statuses.size() == 1);
    return reply.statuses[0].code();
  };
  const auto unhealthy = [&] { return world.ask(rpc::ListUnhealthyBuckets{}).buckets; };
  CHECK(unhealthy().empty());
  CHECK(accept(kBucket) == StatusCode::InvalidArgument);
  CHECK(accept(BucketId(30, 5)) == StatusCode::NotFound);
  for (std::uint16_t node = 0; node < nodes; ++node) damage(world, node);
  // Each of the two nodes has lost a different document.
  if (nodes == 2) world.storage[1][kBucket.raw()].documents.erase(kOther);
  world.run(seconds(3));
  REQUIRE(unhealthy().size() == 1);
  CHECK(unhealthy()[0].kind == rpc::BucketProblem::Lost);
  CHECK(unhealthy()[0].bucket == kBucket);
  CHECK(unhealthy()[0].damaged.size() == nodes);
  REQUIRE(get_code(world, kAbsent) == StatusCode::Corruption);

  REQUIRE(accept(kBucket) == StatusCode::Ok);
  CHECK(accept(kBucket) == StatusCode::Ok);  // Accepting the loss again has no effect.
  world.run(seconds(12));
  CHECK(unhealthy().empty());
  for (std::uint16_t node = 0; node < nodes; ++node) {
    CHECK_FALSE(is_damaged(world, node));
    CHECK(world.storage[node][kBucket.raw()].documents.contains(kOther));
  }
  CHECK(get_code(world, kId) == StatusCode::NotFound);
  CHECK(get_code(world, kAbsent) == StatusCode::NotFound);
  CHECK(get_code(world, kOther) == StatusCode::Ok);
  CHECK(world.counter("fjord_distributor_accepted_losses_total") == nodes);
  CHECK(world.counter("fjord_distributor_repaired_replicas_total") == 0);

  // The loss that was accepted was the earlier one only.
  for (std::uint16_t node = 0; node < nodes; ++node) world.storage[node][kBucket.raw()].damaged = true;
  world.run(seconds(12));
  REQUIRE(unhealthy().size() == 1);
  CHECK(unhealthy()[0].kind == rpc::BucketProblem::Lost);
}

TEST_CASE("damaged replicas: a node that is filled from a damaged one does not become a member") {
  DistributorWorld world(3);
  fill(world);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  damage(world, members[0]);
  world.hook = no_merges();
  // The intact member goes down, and another node has to take its place.
  std::string state;
  for (std::uint16_t i = 0; i < 3; ++i) state += " ." + std::to_string(i) + (i == members[1] ? ".s:d" : ".v:1");
  world.give_state(2, state);
  world.hook = nullptr;
  world.run(seconds(12));
  const std::uint16_t third = static_cast<std::uint16_t>(3 - members[0] - members[1]);
  CHECK(world.set_at(third, kBucket).epoch == 0);
  CHECK(is_damaged(world, members[0]));
  CHECK(get_code(world, kId) == StatusCode::Corruption);
  CHECK(world.storage[third][kBucket.raw()].documents.contains(kOther));  // The new member has the remaining documents.
}

TEST_CASE("damaged replicas: they are known after a change of the cluster state, and told of a new set last") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 0);
  std::vector<std::uint16_t> told;
  world.hook = [&](std::uint16_t node, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (const auto* sets = std::get_if<rpc::SetReplicaSets>(&request)) {
      for (const rpc::BucketReplicaSet& entry : sets->buckets) {
        if (entry.bucket == kBucket) told.push_back(node);
      }
    }
    return std::nullopt;
  };
  world.give_state(2, " .0.v:2 .1.v:2");
  world.run(seconds(1));
  CHECK_FALSE(is_damaged(world, 0));
  CHECK(told == std::vector<std::uint16_t>{1, 0, 1, 0});
  CHECK(get_code(world, kId) == StatusCode::Ok);
}

TEST_CASE("damaged replicas: an operation that waits for the comparison goes on if no member turns out intact") {
  DistributorWorld world(3);
  fill(world);
  const std::vector<std::uint16_t> members = world.ideal(kBucket);
  damage(world, members[0]);
  std::shared_ptr<std::optional<rpc::ExecuteReply>> waiting;
  world.hook = [&](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* question = std::get_if<rpc::GetBucketInfo>(&request);
    const bool merged = !world.transport.sent_of<rpc::MergeBucket>().empty();
    if (question == nullptr || question->all || !merged || waiting != nullptr) return std::nullopt;
    waiting = world.send(put_batch(kOther, 0, 1, "new"));  // The distributor is still comparing the replicas.
    return std::nullopt;
  };
  // The intact member goes down, and another node has to take its place.
  std::string state;
  for (std::uint16_t i = 0; i < 3; ++i) state += " ." + std::to_string(i) + (i == members[1] ? ".s:d" : ".v:1");
  world.give_state(2, state);
  REQUIRE(world.scheduler.run_until([&] { return waiting != nullptr; }, seconds(12)));
  CHECK_FALSE(waiting->has_value());
  world.run(seconds(1));
  REQUIRE(waiting->has_value());
  CHECK((*waiting)->results.at(0).status);
}

TEST_CASE("damaged replicas: a loss after the repair is not covered by that repair") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 1);
  world.run(seconds(3));
  REQUIRE_FALSE(is_damaged(world, 1));
  // Both replicas lose this later document, and then hold exactly what they held at the time of the repair.
  REQUIRE(execute(world, put_batch(kAbsent)).status);
  for (std::uint16_t node = 0; node < 2; ++node) {
    world.storage[node][kBucket.raw()].documents.erase(kAbsent);
    world.storage[node][kBucket.raw()].damaged = true;
  }
  world.run(seconds(3));
  disturb(world);
  CHECK(is_damaged(world, 1));
  world.restart();
  world.give_state(2);
  CHECK(get_code(world, kAbsent) == StatusCode::Corruption);
}

TEST_CASE("damaged replicas: a repair that a new cluster state interrupts is not completed under that state") {
  DistributorWorld world(2);
  fill(world);
  damage(world, 1);
  world.hook = [](std::uint16_t, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    if (!std::holds_alternative<rpc::SetReplicaSets>(request)) return std::nullopt;
    return Result<rpc::Reply>(Status(StatusCode::Timeout, "lost"));
  };
  world.run(seconds(3));
  REQUIRE(world.counter("fjord_distributor_repaired_replicas_total") == 1);
  REQUIRE(is_damaged(world, 1));
  // The distributor skips a cluster state. In that state another distributor may have put a document, and both replicas
  // may have lost it since.
  world.storage[0][kBucket.raw()].damaged = true;
  world.hook = nullptr;
  world.give_state(3, " .0.v:1 .1.v:1");
  world.run(seconds(12));
  disturb(world);
  CHECK(is_damaged(world, 1));
  CHECK(get_code(world, kAbsent) == StatusCode::Corruption);
}

TEST_CASE("missing replicas: one that is gone is made again from the other within seconds") {
  DistributorWorld world(3);
  fill(world);
  world.run(seconds(3));
  const std::uint16_t node = world.ideal(kBucket).front();
  world.storage[node].erase(kBucket.raw());
  world.run(seconds(6));
  CHECK(world.holds(node, kBucket));
  CHECK(world.storage[node][kBucket.raw()].documents.contains(kId));
  CHECK(get_code(world, kId) == StatusCode::Ok);
  CHECK(report(world).buckets_unavailable == 0);
  CHECK(report(world).buckets_out_of_sync == 0);
}

TEST_CASE("missing replicas: a bucket without any replica is unavailable within seconds, and not a missing document") {
  DistributorWorld world(3);
  fill(world);
  world.run(seconds(3));
  CHECK(report(world).buckets_unavailable == 0);
  for (auto& storage : world.storage) storage.clear();
  world.run(seconds(3));
  CHECK(report(world).buckets_unavailable > 0);
  CHECK(get_code(world, kId) == StatusCode::Unavailable);
}

TEST_CASE("missing replicas: nothing is collected again while all are there") {
  DistributorWorld world(3);
  fill(world);
  world.run(seconds(3));
  const std::uint64_t epoch = world.set_at(world.ideal(kBucket).front(), kBucket).epoch;
  world.run(seconds(10));
  CHECK(world.set_at(world.ideal(kBucket).front(), kBucket).epoch == epoch);
  CHECK(report(world).buckets_out_of_sync == 0);
}

}  // namespace fjord::test
