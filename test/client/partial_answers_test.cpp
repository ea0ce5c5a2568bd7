// Deadlines that a client sends to distributors, and answers in parts.

#include <catch2/catch.hpp>

#include "client_world.h"
#include "fjord/rpc/deadline.h"

namespace fjord::test {
namespace {

std::string id_of(int i) { return "id:n:thing::" + std::to_string(i); }

/// Answers the first batch of several operations with all outcomes except the last one; `rest` answers the request for
/// that one.
void answer_in_parts(ClientWorld& world, ClientWorld::OnExecute rest) {
  world.on_execute = [rest](const rpc::Address& to, const rpc::Execute& batch) {
    if (batch.rest != 0 || batch.operations.size() < 2) return rest(to, batch);
    rpc::ExecuteReply reply;
    reply.results.assign(batch.operations.size(), result_of(StatusCode::Ok));
    reply.results.back().status = Status(StatusCode::Unknown, "");
    reply.rest = 77;
    return std::optional(Result<rpc::ExecuteReply>(std::move(reply)));
  };
}

ClientOptions one_distributor() { return {}; }

/// Sends three puts of documents of one distributor, which travel in one batch.
void put_three(ClientWorld& world, Duration timeout) {
  world.info = info_of_version(1, "distributor:1 storage:2");
  world.put(id_of(0));  // Makes the client fetch the cluster state.
  world.run(milliseconds(50));
  world.outcomes.clear();
  for (int i = 1; i <= 3; ++i) world.put(id_of(i), timeout);
}

}  // namespace

TEST_CASE("the callee gets less time than the caller waits", "[client]") {
  for (const Duration left : std::vector<Duration>{microseconds(1), microseconds(700), milliseconds(1), milliseconds(2),
                                                   milliseconds(20), milliseconds(999), seconds(2), seconds(60)}) {
    CAPTURE(left.count());
    const Duration given = rpc::time_for_callee(left);
    CHECK(given >= Duration(1));
    CHECK(given <= left);
    CHECK(given >= left / 2);
    CHECK(left - given <= milliseconds(250));
    if (left >= milliseconds(2)) CHECK(left - given >= milliseconds(1));
    if (left >= milliseconds(10) && left <= seconds(2)) CHECK(left - given == left / 10);
  }
}

TEST_CASE("a distributor is given less time than the caller of an operation waits", "[client]") {
  ClientWorld world;
  world.put(id_of(0), seconds(1));
  world.run(milliseconds(2));
  world.put(id_of(1), milliseconds(500));
  world.put(id_of(2), milliseconds(1000));
  world.run();
  for (const rpc::Execute& batch : world.batches()) {
    CHECK(batch.timeout_us <= 900'000);
    for (const rpc::Operation& operation : batch.operations) {
      if (operation.id == id_of(1)) CHECK(std::max(operation.timeout_us, batch.timeout_us) <= 900'000);
    }
  }
  // A refusal at the distributor's deadline still arrives in time.
  world.outcomes.clear();
  world.on_execute = [](const rpc::Address&, const rpc::Execute&) { return std::nullopt; };
  world.put(id_of(3), seconds(1));
  world.run();
  CHECK(world.outcomes.at(0).second.outcome == Outcome::InDoubt);
}

TEST_CASE("operations whose outcome comes in a part of the answer end, and the rest is asked for", "[client]") {
  ClientWorld world(one_distributor());
  put_three(world, seconds(1));
  answer_in_parts(world, [](const rpc::Address&, const rpc::Execute& batch) {
    CHECK(batch.operations.empty());
    CHECK(batch.rest == 77);
    CHECK(batch.client_id != 0);
    rpc::ExecuteReply reply;
    reply.results = {result_of(StatusCode::TestAndSetFailed)};
    return std::optional(Result<rpc::ExecuteReply>(std::move(reply)));
  });
  const std::size_t before = world.batches().size();
  world.run(seconds(2));
  REQUIRE(world.outcomes.size() == 3);
  CHECK(world.batches()[before].part_after_us == 50'000);
  CHECK(world.outcomes[0].second.is_ok());
  CHECK(world.outcomes[1].second.is_ok());
  CHECK(world.outcomes[2].first == id_of(3));
  CHECK(world.outcomes[2].second.outcome == Outcome::NotApplied);
  CHECK(world.outcomes[2].second.attempts == 1);
}

TEST_CASE("what the rest of an answer does not tell is in doubt, and asked for by a repetition", "[client]") {
  ClientWorld world(one_distributor());
  put_three(world, seconds(1));
  const StatusCode code = GENERATE(StatusCode::Timeout, StatusCode::NotReady, StatusCode::Unavailable);
  bool repeats_are_answered = GENERATE(false, true);
  answer_in_parts(world, [=](const rpc::Address&, const rpc::Execute& batch) {
    rpc::ExecuteReply reply;
    if (batch.rest != 0) {
      reply.status = Status(code, "the distributor has started anew");
    } else if (!repeats_are_answered) {
      return std::optional<Result<rpc::ExecuteReply>>();
    } else {
      CHECK(batch.operations.at(0).attempt == 2);
      reply.results = {result_of(StatusCode::Ok)};
    }
    return std::optional(Result<rpc::ExecuteReply>(std::move(reply)));
  });
  world.run(seconds(2));
  REQUIRE(world.outcomes.size() == 3);
  CHECK(world.outcomes[2].second.outcome == (repeats_are_answered ? Outcome::Applied : Outcome::InDoubt));
}

TEST_CASE("an operation whose rest is not answered is in doubt at its own deadline", "[client]") {
  ClientWorld world(one_distributor());
  put_three(world, seconds(1));
  answer_in_parts(world, [](const rpc::Address&, const rpc::Execute&) { return std::nullopt; });
  const MonotonicTime begin = world.now();
  world.run(milliseconds(100));
  CHECK(world.outcomes.size() == 2);
  world.run(milliseconds(1000));
  REQUIRE(world.outcomes.size() == 3);
  CHECK(world.outcomes[2].second.outcome == Outcome::InDoubt);
  CHECK(world.now() - begin <= milliseconds(1100));
}

TEST_CASE("the rest of an answer does not hold back the next batch", "[client]") {
  ClientWorld world(one_distributor());
  put_three(world, seconds(5));
  answer_in_parts(world, [](const rpc::Address&, const rpc::Execute& batch) {
    if (batch.rest != 0) return std::optional<Result<rpc::ExecuteReply>>();
    rpc::ExecuteReply reply;
    reply.results.assign(batch.operations.size(), result_of(StatusCode::Ok));
    return std::optional(Result<rpc::ExecuteReply>(std::move(reply)));
  });
  world.run(milliseconds(100));
  world.outcomes.clear();
  world.put(id_of(9));
  world.run(milliseconds(3));  // 3 ms are shorter than the time that a batch waits behind a slow batch.
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].second.is_ok());
}

TEST_CASE("without partial answers a batch asks for none", "[client]") {
  ClientOptions options;
  options.partial_answer_after = Duration(0);
  ClientWorld world(options);
  put_three(world, seconds(1));
  world.run();
  for (const rpc::Execute& batch : world.batches()) CHECK(batch.part_after_us == 0);
}

}  // namespace fjord::test
