// Answers in parts, and deadlines of single operations (docs/design/0015-deadlines-and-partial-answers.md).

#include <catch2/catch.hpp>

#include "distributor_world.h"

namespace fjord::test {
namespace {

/// Four storage nodes, redundancy 2, eight buckets, all of them created.
struct PartsWorld : DistributorWorld {
  PartsWorld() : DistributorWorld(4, 2, 3) {
    give_state(1);
    for (int i = 0; i < 64; ++i) REQUIRE(ask(put_batch(id_of(i))).results[0].status);
  }
  static std::string id_of(int i) { return "id:n:item::" + std::to_string(i); }
  bool is_on(std::uint16_t node, const std::string& id) {
    const auto nodes = ideal(bucket_of_id(id, 3));
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }
  /// Returns the n-th document that has (`there`) or has no replica on the node.
  std::string document(std::uint16_t node, bool there, int n = 0) {
    for (int i = 0; i < 64; ++i) {
      if (is_on(node, id_of(i)) == there && n-- == 0) return id_of(i);
    }
    throw std::runtime_error("no such document");
  }
  static rpc::Execute puts(const std::vector<std::string>& ids, Duration timeout, Duration part_after) {
    rpc::Execute batch = put_batch(ids[0], 1);
    batch.timeout_us = timeout.count();
    batch.part_after_us = part_after.count();
    for (std::size_t i = 1; i < ids.size(); ++i) batch.operations.push_back(put_batch(ids[i], i + 1).operations[0]);
    return batch;
  }
  static rpc::Execute rest_of(const rpc::ExecuteReply& part, std::uint64_t client = 5) {
    rpc::Execute question;
    question.client_id = client;
    question.rest = part.rest;
    return question;
  }
};

}  // namespace

TEST_CASE(
    "distributor: outcomes that are known are told while another operation of the batch waits for a silent node") {
  PartsWorld world;
  const std::string healthy = world.document(1, false);
  const std::string silent = world.document(1, true);
  world.mute[1] = true;
  const MonotonicTime begin = world.clock.now();
  const rpc::ExecuteReply part =
      world.ask(PartsWorld::puts({silent, healthy}, seconds(1), milliseconds(50)), milliseconds(60));
  REQUIRE(part.status);
  REQUIRE(part.rest != 0);
  REQUIRE(part.results.size() == 2);
  CHECK(part.results[0].status.code() == StatusCode::Unknown);
  CHECK(part.results[1].status);
  CHECK(part.results[1].timestamp_us > 0);
  CHECK(world.clock.now() - begin >= milliseconds(50));
  CHECK(world.counter("fjord_distributor_partial_answers_total") == 1);

  const rpc::ExecuteReply rest = world.ask(PartsWorld::rest_of(part));
  CHECK(rest.rest == 0);
  REQUIRE(rest.results.size() == 1);
  CHECK(rest.results[0].status.code() == StatusCode::Timeout);
  CHECK(world.clock.now() - begin >= milliseconds(999));
  CHECK(world.clock.now() - begin < milliseconds(1010));
}

TEST_CASE("distributor: the rest of an answer comes as soon as it is known, and only once") {
  PartsWorld world;
  world.mute[1] = true;
  const std::string silent = world.document(1, true);
  const rpc::ExecuteReply part =
      world.ask(PartsWorld::puts({world.document(1, false), silent}, seconds(4), milliseconds(50)));
  auto rest = world.send(PartsWorld::rest_of(part));
  world.run(milliseconds(100));
  REQUIRE_FALSE(rest->has_value());
  world.mute[1] = false;  // The operation is sent again after the timeout of a storage node.
  world.run(milliseconds(400));
  REQUIRE(rest->has_value());
  REQUIRE((*rest)->results.size() == 1);
  CHECK((*rest)->results[0].status);

  // A late duplicate of the request for the rest: the distributor has delivered the outcomes and dropped them.
  const rpc::ExecuteReply again = world.ask(PartsWorld::rest_of(part));
  CHECK(again.status.code() == StatusCode::Timeout);
}

TEST_CASE("distributor: the rest of an answer is given to the client that has the part, and not kept for long") {
  PartsWorld world;
  world.mute[1] = true;
  const rpc::Execute batch =
      PartsWorld::puts({world.document(1, false), world.document(1, true)}, milliseconds(500), milliseconds(50));
  SECTION("another client asks") {
    const rpc::ExecuteReply part = world.ask(batch);
    CHECK(world.ask(PartsWorld::rest_of(part, 6)).status.code() == StatusCode::Timeout);
    CHECK(world.ask(PartsWorld::rest_of(part)).status);
  }
  SECTION("the question comes a little after the deadline") {
    const rpc::ExecuteReply part = world.ask(batch);
    world.run(milliseconds(600));
    const rpc::ExecuteReply rest = world.ask(PartsWorld::rest_of(part));
    REQUIRE(rest.status);
    REQUIRE(rest.results.size() == 1);
    CHECK(rest.results[0].status.code() == StatusCode::Timeout);
  }
  SECTION("the question does not come") {
    const rpc::ExecuteReply part = world.ask(batch);
    world.run(seconds(3));
    CHECK(world.ask(PartsWorld::rest_of(part)).status.code() == StatusCode::Timeout);
  }
}

TEST_CASE("distributor: a batch of a client that does not take parts is answered as a whole") {
  PartsWorld world;
  world.mute[1] = true;
  const rpc::ExecuteReply reply =
      world.ask(PartsWorld::puts({world.document(1, false), world.document(1, true)}, seconds(1), Duration(0)));
  CHECK(reply.rest == 0);
  REQUIRE(reply.results.size() == 2);
  CHECK(reply.results[0].status);
  CHECK(reply.results[1].status.code() == StatusCode::Timeout);
}

TEST_CASE("distributor: while nothing of a batch is known nothing is told, and then at once") {
  PartsWorld world;
  world.mute[1] = true;
  world.mute[2] = true;
  std::string behind_2;
  for (int i = 0; i < 64 && behind_2.empty(); ++i) {
    if (world.is_on(2, PartsWorld::id_of(i)) && !world.is_on(1, PartsWorld::id_of(i))) behind_2 = PartsWorld::id_of(i);
  }
  REQUIRE_FALSE(behind_2.empty());
  auto part = world.send(PartsWorld::puts({world.document(1, true), behind_2}, seconds(4), milliseconds(50)));
  world.run(milliseconds(150));
  REQUIRE_FALSE(part->has_value());
  world.mute[2] = false;
  world.run(milliseconds(400));
  REQUIRE(part->has_value());
  REQUIRE((*part)->rest != 0);
  CHECK((*part)->results[0].status.code() == StatusCode::Unknown);
  CHECK((*part)->results[1].status);
}

TEST_CASE("distributor: each operation of a batch ends at its own deadline") {
  PartsWorld world;
  world.mute[1] = true;
  rpc::Execute batch =
      PartsWorld::puts({world.document(1, true), world.document(1, true, 1)}, seconds(2), milliseconds(50));
  batch.operations[0].timeout_us = 300'000;
  const MonotonicTime begin = world.clock.now();
  const rpc::ExecuteReply part = world.ask(std::move(batch));
  REQUIRE(part.results.size() == 2);
  CHECK(part.results[0].status.code() == StatusCode::Timeout);
  CHECK(part.results[1].status.code() == StatusCode::Unknown);
  CHECK(world.clock.now() - begin < milliseconds(310));
}

TEST_CASE("distributor: a read whose replica is silent is answered by another one before its deadline") {
  PartsWorld world;
  const std::string id = world.document(1, true);
  world.mute[1] = true;
  for (int i = 0; i < 8; ++i) {  // Repeated, as each read chooses a replica at random.
    rpc::Execute batch = get_batch(id);
    batch.timeout_us = 300'000;
    const rpc::ExecuteReply reply = world.ask(std::move(batch));
    REQUIRE(reply.results[0].status);
  }
}

}  // namespace fjord::test
