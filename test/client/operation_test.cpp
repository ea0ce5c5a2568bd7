#include <algorithm>
#include <set>

#include "client_world.h"

namespace fjord::test {
namespace {

std::string id_of(int n) { return "id:n:t::" + std::to_string(n); }

/// Returns `count` ids that belong to the distributor of id_of(0).
std::vector<std::string> ids_of_one_distributor(ClientWorld& world, std::size_t count) {
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(milliseconds(20));
  const auto snapshot = world.client->snapshot();
  const auto owner = [&](const std::string& id) {
    return snapshot->distributor_of(snapshot->bucket_of(DocumentId::parse(id).value().gid()));
  };
  std::vector<std::string> ids;
  for (int n = 0; ids.size() < count; ++n) {
    if (owner(id_of(n)) == owner(id_of(0))) ids.push_back(id_of(n));
  }
  return ids;
}

}  // namespace

TEST_CASE("a put reaches its distributor and its answer the caller", "[client]") {
  ClientWorld world;
  world.answer_operations([](const rpc::Operation&) {
    rpc::OperationResult result;
    result.timestamp_us = 77;
    result.existed = true;
    return result;
  });
  const OperationOutcome outcome = world.put_and_run(id_of(1));
  CHECK(outcome.status == Status::ok());
  CHECK(outcome.outcome == Outcome::Applied);
  CHECK(outcome.timestamp_us == 77);
  CHECK(outcome.existed);
  CHECK(outcome.attempts == 1);
  CHECK(world.client->pending() == 0);
  REQUIRE(world.batches().size() == 1);
  const rpc::Execute batch = world.batches().front();
  CHECK(batch.state_version == 1);
  CHECK(batch.client_id == world.client->client_id());
  CHECK(batch.client_id != 0);
  REQUIRE(batch.operations.size() == 1);
  CHECK(batch.operations[0].header == "header of " + id_of(1));
  CHECK(batch.operations[0].sequence == 1);
}

TEST_CASE("what a receiver must obey travels in a strict batch, which an older distributor refuses", "[client]") {
  ClientWorld world;
  bool is_old = true;
  world.on_other = [&](const rpc::Address&, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    const auto* strict = std::get_if<rpc::ExecuteStrict>(&request);
    if (strict == nullptr) return std::nullopt;
    if (is_old) return Result<rpc::Reply>(Status(StatusCode::NotImplemented, "executeStrict: no such call"));
    rpc::ExecuteStrictReply reply;
    for (const rpc::Operation& operation : strict->batch.operations) {
      rpc::OperationResult result;
      if (operation.required_version) {
        result = result_of(StatusCode::TestAndSetFailed);
        result.version_us = 42;
      } else {
        result.json = std::to_string(*operation.node);
      }
      reply.batch.results.push_back(std::move(result));
    }
    return Result<rpc::Reply>(rpc::Reply(std::move(reply)));
  };
  const auto send = [&] {
    world.outcomes.clear();
    rpc::Operation put = put_operation(id_of(1), {"header", "body"});
    put.required_version = 7;
    rpc::Operation get = get_json_operation(id_of(2));
    get.node = 3;
    world.client->execute(std::move(put), seconds(5), world.keep("put"));
    world.client->execute(std::move(get), seconds(5), world.keep("get"));
    world.run();
    REQUIRE(world.outcomes.size() == 2);
    std::map<std::string, OperationOutcome> by_name(world.outcomes.begin(), world.outcomes.end());
    return by_name;
  };
  auto refused = send();
  CHECK(refused["put"].status.code() == StatusCode::NotImplemented);
  CHECK(refused["put"].outcome == Outcome::NotApplied);
  CHECK(refused["get"].status.code() == StatusCode::NotImplemented);
  is_old = false;
  auto done = send();
  CHECK(done["put"].status.code() == StatusCode::TestAndSetFailed);
  CHECK(done["put"].outcome == Outcome::NotApplied);
  CHECK(done["put"].version_us == 42);
  CHECK_FALSE(done["put"].token.empty());  // An operation that reads before it writes gets an idempotency key.
  CHECK(done["get"].json == "3");
  CHECK(world.batches().empty());
  for (const rpc::ExecuteStrict& strict : world.transport.sent_of<rpc::ExecuteStrict>()) {
    REQUIRE(strict.batch.operations.size() == 1);
    const bool is_put = strict.batch.operations[0].required_version.has_value();
    CHECK(strict.features == std::vector<std::string>{is_put ? "required_version" : "node"});
  }
}

TEST_CASE("each operation goes to the distributor that the placement names", "[client]") {
  ClientWorld world;
  for (int n = 0; n < 200; ++n) world.get(id_of(n));
  world.run();
  REQUIRE(world.outcomes.size() == 200);
  const auto snapshot = world.client->snapshot();
  std::set<rpc::Address> used;
  for (const auto& call : world.transport.sent()) {
    const auto* batch = std::get_if<rpc::Execute>(&call.request);
    if (batch == nullptr) continue;
    used.insert(call.to);
    for (const rpc::Operation& operation : batch->operations) {
      const auto bucket = snapshot->bucket_of(DocumentId::parse(operation.id).value().gid());
      REQUIRE(call.to == snapshot->info().distributor_addresses[*snapshot->distributor_of(bucket)]);
      REQUIRE(operation.sequence == 0);  // Gets have no sequence number.
    }
  }
  REQUIRE(used.size() == 2);
}

TEST_CASE("an id that cannot be parsed is refused without being sent", "[client]") {
  ClientWorld world;
  const OperationOutcome outcome = world.put_and_run("nonsense");
  CHECK(outcome.status.code() == StatusCode::InvalidId);
  CHECK(outcome.outcome == Outcome::NotApplied);
  CHECK(outcome.attempts == 0);
  CHECK(world.batches().empty());
  // The refused operation blocks neither the deduplication window nor the next operation.
  CHECK(world.put_and_run(id_of(1)).is_ok());
  CHECK(world.batches().at(0).first_unsettled == 2);
}

TEST_CASE("what comes while a batch is away travels together in the next one", "[client]") {
  ClientWorld world;
  const auto ids = ids_of_one_distributor(world, 101);
  world.transport.set_delay(milliseconds(4));
  world.put(ids[0]);
  world.run(milliseconds(1));  // The first put is sent at once, in a batch of its own.
  REQUIRE(world.batches().size() == 1);
  for (std::size_t i = 1; i <= 100; ++i) world.put(ids[i]);
  world.run(milliseconds(2));
  REQUIRE(world.batches().size() == 1);
  world.run();
  REQUIRE(world.batches().size() == 2);
  CHECK(world.batches()[0].operations.size() == 1);
  CHECK(world.batches()[1].operations.size() == 100);
  CHECK(world.outcomes.size() == 101);
}

TEST_CASE("nothing waits for long behind a batch that takes long, and reads never wait for writes", "[client]") {
  ClientWorld world;
  const auto ids = ids_of_one_distributor(world, 4);
  world.transport.set_delay(milliseconds(500));
  world.put(ids[0]);
  world.run(milliseconds(1));
  world.put(ids[1]);
  world.get(ids[2]);
  world.run(milliseconds(1));
  REQUIRE(world.batches().size() == 2);
  CHECK(world.batches()[1].operations[0].kind == rpc::OperationKind::Get);
  world.put(ids[3]);
  world.run(milliseconds(10));
  REQUIRE(world.batches().size() == 3);
  CHECK(world.batches()[2].operations.size() == 2);
}

TEST_CASE("full batches go out side by side up to the limit", "[client]") {
  ClientOptions options;
  options.batch_operations_max = 10;
  options.batches_in_flight_max = 3;
  ClientWorld world(options);
  const auto ids = ids_of_one_distributor(world, 55);
  world.transport.set_delay(milliseconds(10));
  for (const auto& id : ids) world.put(id);
  world.run(milliseconds(4));
  REQUIRE(world.batches().size() == 3);
  for (const auto& batch : world.batches()) CHECK(batch.operations.size() == 10);
  world.run();
  REQUIRE(world.batches().size() == 6);
  CHECK(world.batches().back().operations.size() == 5);
  CHECK(world.outcomes.size() == 55);
}

TEST_CASE("a batch ends at its size in bytes, and a larger operation travels alone", "[client]") {
  ClientOptions options;
  options.batch_bytes_max = 1000;
  ClientWorld world(options);
  const auto ids = ids_of_one_distributor(world, 5);
  const std::size_t sizes[] = {400, 400, 400, 3000, 100};
  for (std::size_t i = 0; i < 5; ++i) {
    world.client->put(ids[i], {std::string(sizes[i], 'x'), ""}, seconds(30), world.keep(ids[i]));
  }
  world.run();
  std::vector<std::size_t> counts;
  for (const auto& batch : world.batches()) counts.push_back(batch.operations.size());
  CHECK(counts == std::vector<std::size_t>{2, 1, 1, 1});
  CHECK(world.outcomes.size() == 5);
}

TEST_CASE("operations that callbacks start travel in the next batch together", "[client]") {
  ClientWorld world;
  const auto ids = ids_of_one_distributor(world, 64);
  int left = 64 * 9;
  std::function<void(std::string)> next = [&](std::string id) {
    if (left-- <= 0) return;
    world.client->get(id, seconds(30), [&, id](OperationOutcome) { next(id); });
  };
  for (const auto& id : ids) next(id);
  world.run();
  REQUIRE(world.client->pending() == 0);
  CHECK(world.batches().size() == 9);
}

TEST_CASE("operations on one id are sent one after the other in the order of the calls", "[client]") {
  ClientWorld world;
  for (int i = 0; i < 4; ++i) world.put(id_of(1));
  world.get(id_of(1));
  world.put(id_of(2));
  world.run(milliseconds(4));
  REQUIRE(world.outcomes.size() < 6);
  world.run();
  REQUIRE(world.outcomes.size() == 6);
  std::vector<std::uint64_t> sequences;
  for (const auto& batch : world.batches()) {
    std::size_t of_one = 0;
    for (const auto& operation : batch.operations) {
      if (operation.id != id_of(1)) continue;
      ++of_one;
      sequences.push_back(operation.sequence);
    }
    CHECK(of_one <= 1);
  }
  CHECK(sequences == std::vector<std::uint64_t>{1, 2, 3, 4, 0});
}

TEST_CASE("reads of one id travel together, after the writes before them and before the writes after them",
          "[client]") {
  ClientWorld world;
  world.put(id_of(1));
  for (int i = 0; i < 100; ++i) world.get(id_of(1));
  world.put(id_of(1));
  world.get(id_of(1));
  world.run();
  REQUIRE(world.outcomes.size() == 103);
  std::vector<std::size_t> gets;  // Number of gets in each batch; 0 for a batch of puts.
  for (const auto& batch : world.batches()) {
    const auto is_get = [](const rpc::Operation& one) { return one.kind == rpc::OperationKind::Get; };
    gets.push_back(static_cast<std::size_t>(std::count_if(batch.operations.begin(), batch.operations.end(), is_get)));
    CHECK((gets.back() == 0 || gets.back() == batch.operations.size()));
  }
  CHECK(gets == std::vector<std::size_t>{0, 100, 0, 1});
}

TEST_CASE("reads of one id that end at different times let go of the write behind them when all have ended",
          "[client]") {
  ClientWorld world;
  bool is_answered = false;
  world.on_execute = [&](const rpc::Address&, const rpc::Execute& batch) -> std::optional<Result<rpc::ExecuteReply>> {
    if (!is_answered && batch.operations[0].kind == rpc::OperationKind::Get) return std::nullopt;
    rpc::ExecuteReply reply;
    reply.results.assign(batch.operations.size(), result_of(StatusCode::Ok));
    return Result<rpc::ExecuteReply>(std::move(reply));
  };
  world.get(id_of(1), milliseconds(100));
  world.get(id_of(1), milliseconds(300));
  world.put(id_of(1), seconds(10));
  world.put(id_of(1), milliseconds(200));  // This put times out while it is queued.
  world.get(id_of(1), seconds(10));
  world.run(milliseconds(250));
  CHECK(world.outcomes.size() == 2);
  is_answered = true;
  world.run();
  REQUIRE(world.outcomes.size() == 5);
  CHECK(world.outcomes[1].second.outcome == Outcome::NotApplied);
  CHECK(world.outcomes[3].second.is_ok());
  CHECK(world.outcomes[4].second.is_ok());
  CHECK(world.put_and_run(id_of(1)).is_ok());  // The next operation on the same id is not blocked.
}

TEST_CASE("a transient error is retried with the same token until it is gone", "[client]") {
  const StatusCode code =
      GENERATE(StatusCode::Busy, StatusCode::Unavailable, StatusCode::NotReady, StatusCode::WrongDistribution);
  ClientWorld world;
  world.answer_batches({code, code, StatusCode::Ok});
  const OperationOutcome outcome = world.put_and_run(id_of(1));
  CHECK(outcome.outcome == Outcome::Applied);
  CHECK(outcome.attempts == 3);
  CHECK(outcome.busy_answers == (code == StatusCode::Busy ? 2 : 0));
  REQUIRE(world.batches().size() == 3);
  for (const auto& batch : world.batches()) {
    CHECK(batch.operations[0].sequence == 1);
    CHECK(batch.operations[0].header == "header of " + id_of(1));
  }
}

TEST_CASE("the pauses between retries double up to their maximum and are never longer", "[client]") {
  ClientWorld world;
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(seconds(1));
  std::vector<std::int64_t> times;
  world.on_execute = [&](const rpc::Address&, const rpc::Execute&) {
    times.push_back(world.now().us);
    return Result<rpc::ExecuteReply>(Status(StatusCode::Busy, "busy"));
  };
  const OperationOutcome outcome = world.put_and_run(id_of(1), seconds(10));
  CHECK(outcome.status.code() == StatusCode::Busy);
  CHECK(outcome.outcome == Outcome::NotApplied);
  REQUIRE(times.size() > 12);
  std::int64_t range = 5000;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const std::int64_t pause = times[i] - times[i - 1] - 1000;  // The round trip takes 1000 us.
    CAPTURE(i);
    CHECK(pause >= range / 2);
    CHECK(pause <= range + 20);
    range = std::min<std::int64_t>(range * 2, 1'000'000);
  }
}

TEST_CASE("a refused operation is not made doubtful by an attempt too late to be answered", "[client]") {
  ClientWorld world;
  world.transport.set_delay(milliseconds(3));
  world.answer_batches({StatusCode::Busy});
  for (int ms = 20; ms < 120; ++ms) {
    const OperationOutcome outcome = world.put_and_run(id_of(1), milliseconds(ms));
    CAPTURE(ms);
    CHECK(outcome.status.code() == StatusCode::Busy);
    CHECK(outcome.outcome == Outcome::NotApplied);
  }
}

TEST_CASE("a permanent error is not retried", "[client]") {
  const StatusCode code = GENERATE(StatusCode::TooLarge, StatusCode::NoSpace, StatusCode::UnknownType,
                                   StatusCode::TestAndSetFailed, StatusCode::NotImplemented);
  ClientWorld world;
  world.answer_batches({code});
  const OperationOutcome outcome = world.put_and_run(id_of(1));
  CHECK(outcome.status.code() == code);
  CHECK(outcome.outcome == Outcome::NotApplied);
  CHECK(outcome.attempts == 1);
}

TEST_CASE("each operation of a batch has its own end", "[client]") {
  ClientWorld world;
  const auto ids = ids_of_one_distributor(world, 3);
  int busy = 0;
  world.answer_operations([&](const rpc::Operation& operation) {
    if (operation.id == ids[1] && busy++ == 0) return result_of(StatusCode::Busy);
    return result_of(operation.id == ids[2] ? StatusCode::TooLarge : StatusCode::Ok);
  });
  for (const auto& id : ids) world.put(id);
  world.run();
  REQUIRE(world.outcomes.size() == 3);
  std::map<std::string, OperationOutcome> by_id(world.outcomes.begin(), world.outcomes.end());
  CHECK(by_id[ids[0]].attempts == 1);
  CHECK(by_id[ids[1]].is_ok());
  CHECK(by_id[ids[1]].attempts == 2);
  CHECK(by_id[ids[2]].status.code() == StatusCode::TooLarge);
}

TEST_CASE("a lost answer is asked for again with the token, and an OK settles the doubt", "[client]") {
  ClientWorld world;
  world.answer_batches({StatusCode::Timeout, StatusCode::Busy, StatusCode::Ok});
  const OperationOutcome outcome = world.put_and_run(id_of(1));
  CHECK(outcome.outcome == Outcome::Applied);
  CHECK(outcome.attempts == 3);
}

TEST_CASE("updates and conditions get a random token and keep it over retries, other operations get none", "[client]") {
  ClientOptions options;
  SECTION("unless told otherwise") { options.make_tokens = false; }
  ClientWorld world(options);
  world.answer_batches({StatusCode::Timeout, StatusCode::Busy, StatusCode::Ok});
  rpc::Operation conditional = remove_operation(id_of(1));
  conditional.condition = "item.count == 1";
  world.client->execute(conditional, seconds(30), world.keep(id_of(1)));
  world.run();
  const auto batches = world.batches();
  REQUIRE(batches.size() == 3);
  const std::string token = batches[0].operations[0].token;
  CHECK(token.size() == (options.make_tokens ? 16u : 0u));
  for (const auto& batch : batches) CHECK(batch.operations[0].token == token);
  CHECK(world.outcomes.at(0).second.token == token);

  world.client->update_json(id_of(2), "{}", seconds(30), world.keep(id_of(2)));
  world.put(id_of(3));
  world.get(id_of(4));
  rpc::Operation with_token = put_operation(id_of(5), {"header", "body"});
  with_token.token = "mine";
  world.client->execute(with_token, seconds(30), world.keep(id_of(5)));
  world.run();
  std::map<std::string, std::string> tokens;
  for (const auto& [id, outcome] : world.outcomes) tokens[id] = outcome.token;
  CHECK(tokens[id_of(2)].size() == token.size());
  CHECK((token.empty() || tokens[id_of(2)] != token));
  CHECK(tokens[id_of(3)].empty());
  CHECK(tokens[id_of(4)].empty());
  CHECK(tokens[id_of(5)] == "mine");
}

TEST_CASE("gets have the client's consistency unless they name one", "[client]") {
  ClientOptions options;
  const bool is_session = GENERATE(false, true);
  if (is_session) options.consistency = rpc::Consistency::Session;
  ClientWorld world(options);
  rpc::Operation named = get_operation(id_of(1));
  named.consistency = rpc::Consistency::Session;
  world.client->execute(named, seconds(30), world.keep(id_of(1)));
  world.get(id_of(2));
  world.run();
  std::map<std::string, rpc::Consistency> sent;
  for (const rpc::Execute& batch : world.batches()) {
    for (const rpc::Operation& operation : batch.operations) sent[operation.id] = operation.consistency;
  }
  REQUIRE(sent.size() == 2);
  CHECK(sent[id_of(1)] == rpc::Consistency::Session);
  CHECK(sent[id_of(2)] == options.consistency);
}

TEST_CASE("a condition that fails is not applied and tells the version, but stays in doubt after a lost attempt",
          "[client]") {
  const bool lost = GENERATE(false, true);
  ClientWorld world;
  int attempts = 0;
  world.on_execute = [&](const rpc::Address&, const rpc::Execute&) -> std::optional<Result<rpc::ExecuteReply>> {
    if (attempts++ == 0 && lost) return std::nullopt;
    rpc::ExecuteReply reply;
    reply.results.push_back(result_of(StatusCode::TestAndSetFailed));
    reply.results[0].version_us = 77;
    return Result<rpc::ExecuteReply>(std::move(reply));
  };
  rpc::Operation put = put_operation(id_of(1), {"header", "body"});
  put.condition = "item.count == 1";
  world.client->execute(put, seconds(30), world.keep(id_of(1)));
  world.run();
  const OperationOutcome& outcome = world.outcomes.at(0).second;
  CHECK(outcome.status.code() == StatusCode::TestAndSetFailed);
  CHECK(outcome.version_us == 77);
  CHECK(outcome.outcome == (lost ? Outcome::InDoubt : Outcome::NotApplied));
  CHECK(world.metrics().counter("fjord_client_not_applied_total", "", {{"reason", "TEST_AND_SET_FAILED"}}).value() ==
        (lost ? 0u : 1u));
}

TEST_CASE("doubt stays when no later attempt succeeds", "[client]") {
  ClientWorld world;
  SECTION("because every answer is lost") {
    world.answer_batches({StatusCode::Timeout});
    const OperationOutcome outcome = world.put_and_run(id_of(1), seconds(12));
    CHECK(outcome.status.code() == StatusCode::Timeout);
    CHECK(outcome.outcome == Outcome::InDoubt);
    CHECK(outcome.attempts == 3);  // Each attempt takes 5 s; the deadline cuts the last one short.
  }
  SECTION("because later attempts are refused until the deadline") {
    world.answer_batches({StatusCode::Timeout, StatusCode::Unavailable});
    const OperationOutcome outcome = world.put_and_run(id_of(1));
    CHECK(outcome.status.code() == StatusCode::Unavailable);
    CHECK(outcome.outcome == Outcome::InDoubt);
  }
  SECTION("because a permanent error says nothing about the attempt before it") {
    world.answer_batches({StatusCode::Timeout, StatusCode::TooLarge});
    const OperationOutcome outcome = world.put_and_run(id_of(1));
    CHECK(outcome.status.code() == StatusCode::TooLarge);
    CHECK(outcome.outcome == Outcome::InDoubt);
  }
  SECTION("because the answer has no status or tells of a failed disk") {
    world.answer_batches({GENERATE(StatusCode::Unknown, StatusCode::IoError, StatusCode::Corruption)});
    CHECK(world.put_and_run(id_of(1)).outcome == Outcome::InDoubt);
  }
  SECTION("because the answer has the wrong number of results") {
    world.on_execute = [](const rpc::Address&, const rpc::Execute&) {
      return Result<rpc::ExecuteReply>(rpc::ExecuteReply{});
    };
    CHECK(world.put_and_run(id_of(1)).outcome == Outcome::InDoubt);
  }
}

TEST_CASE("a get is never in doubt", "[client]") {
  ClientWorld world;
  world.answer_batches({StatusCode::Timeout});
  world.get(id_of(1), seconds(7));
  world.run();
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].second.status.code() == StatusCode::Timeout);
  CHECK(world.outcomes[0].second.outcome == Outcome::NotApplied);
}

TEST_CASE("every operation ends at its own deadline whatever it waits for", "[client]") {
  ClientOptions options;
  options.window_operations_max = 2;
  ClientWorld world(options);
  const auto ids = ids_of_one_distributor(world, 4);
  world.on_execute = [](const rpc::Address&, const rpc::Execute&) { return std::nullopt; };
  const MonotonicTime start = world.now();
  std::map<std::string, std::pair<OperationOutcome, Duration>> ended;
  const auto put = [&](const std::string& name, const std::string& id, Duration timeout) {
    world.client->put(id, {"h", "b"}, timeout, [&, name](OperationOutcome outcome) {
      ended[name] = {std::move(outcome), world.now() - start};
    });
  };
  put("long", ids[0], seconds(4));
  put("short, same batch", ids[1], milliseconds(300));
  put("behind", ids[0], milliseconds(500));
  world.run(milliseconds(1));
  put("queued", ids[2], milliseconds(700));
  world.run();
  REQUIRE(ended.size() == 4);
  const auto check = [&](const std::string& name, Outcome outcome, StatusCode code, Duration at) {
    CAPTURE(name, ended[name].first.status);
    CHECK(ended[name].first.outcome == outcome);
    CHECK(ended[name].first.status.code() == code);
    CHECK(ended[name].second >= at);
    CHECK(ended[name].second <= at + milliseconds(6));
  };
  check("long", Outcome::InDoubt, StatusCode::Timeout, seconds(4));
  check("short, same batch", Outcome::InDoubt, StatusCode::Timeout, milliseconds(300));
  check("behind", Outcome::NotApplied, StatusCode::NotReady, milliseconds(500));
  check("queued", Outcome::NotApplied, StatusCode::NotReady, milliseconds(700));
  CHECK_THAT(ended["behind"].first.status.message(), Catch::Contains("an earlier operation on the same id"));
  CHECK_THAT(ended["queued"].first.status.message(), Catch::Contains("waiting for the same distributor"));
  // The next operation on the same id is not blocked.
  world.answer_batches({StatusCode::Ok});
  CHECK(world.put_and_run(ids[0]).is_ok());
}

TEST_CASE("operations that expire while they are queued do not count as waiting bytes any more", "[client]") {
  ClientOptions options;
  options.batch_bytes_max = 4000;
  options.batches_in_flight_max = 2;
  ClientWorld world(options);
  world.on_execute = [](const rpc::Address&, const rpc::Execute&) { return std::nullopt; };
  const auto ids = ids_of_one_distributor(world, 40);
  for (std::size_t i = 0; i < 20; ++i) {
    world.client->put(ids[i], {std::string(1000, 'h'), "b"}, milliseconds(200), world.keep(ids[i]));
  }
  world.run();
  REQUIRE(world.outcomes.size() == 20);
  // One batch is under way, and the next operations wait for a moment so that they become one batch.
  const std::size_t before = world.batches().size();
  for (std::size_t i = 20; i < 40; ++i) {
    world.put(ids[i], milliseconds(200));
    world.run(std::chrono::microseconds(10));
  }
  CHECK(world.batches().size() == before + 1);
  world.run();
  CHECK(world.batches().size() <= before + 3);
}

TEST_CASE("operations on one id that expire together do not take the turn of the next one with them", "[client]") {
  ClientWorld world;
  world.on_execute = [](const rpc::Address&, const rpc::Execute&) { return std::nullopt; };
  world.put(id_of(1), seconds(1));
  world.put(id_of(1), seconds(1));
  world.put(id_of(1), seconds(20));
  world.run(milliseconds(900));
  world.answer_batches({StatusCode::Ok});
  world.run();
  REQUIRE(world.outcomes.size() == 3);
  CHECK(world.outcomes[0].second.outcome == Outcome::InDoubt);
  CHECK(world.outcomes[1].second.outcome == Outcome::NotApplied);
  CHECK(world.outcomes[2].second.is_ok());
}

TEST_CASE("each batch tells the lowest sequence that is not settled", "[client]") {
  ClientWorld world;
  const auto ids = ids_of_one_distributor(world, 3);
  bool refuse = true;
  world.answer_operations([&](const rpc::Operation& operation) {
    return result_of(operation.id == ids[0] && refuse ? StatusCode::Busy : StatusCode::Ok);
  });
  world.put(ids[0]);
  world.run(milliseconds(200));
  world.put(ids[1]);
  world.run(milliseconds(200));
  world.put(ids[2]);
  world.run(milliseconds(200));
  REQUIRE(world.outcomes.size() == 2);
  for (const auto& batch : world.batches()) CHECK(batch.first_unsettled == 1);
  refuse = false;
  world.run();
  REQUIRE(world.outcomes.size() == 3);
  world.put(ids[1]);
  world.run();
  CHECK(world.batches().back().operations[0].sequence == 4);
  CHECK(world.batches().back().first_unsettled == 4);
}

TEST_CASE("destroying the client ends what is pending, and what was sent is in doubt", "[client]") {
  ClientWorld world;
  const auto ids = ids_of_one_distributor(world, 2);
  world.on_execute = [](const rpc::Address&, const rpc::Execute&) { return std::nullopt; };
  world.put(ids[0]);
  world.put(ids[0]);
  world.run(milliseconds(10));
  Status ready;
  const std::size_t calls = world.transport.sent().size();
  world.client->refresh_schemas(seconds(100), [&](Status status) { ready = status; });
  world.client.reset();
  world.run();
  REQUIRE(world.outcomes.size() == 2);
  std::multiset<Outcome> outcomes;
  for (const auto& [id, outcome] : world.outcomes) {
    CHECK(outcome.status.code() == StatusCode::Cancelled);
    outcomes.insert(outcome.outcome);
  }
  CHECK(outcomes == std::multiset<Outcome>{Outcome::NotApplied, Outcome::InDoubt});
  CHECK(ready.code() == StatusCode::Cancelled);
  CHECK(world.transport.sent().size() == calls);
}

TEST_CASE("operations, retries and batches are counted", "[client]") {
  ClientWorld world;
  world.answer_batches({StatusCode::Busy, StatusCode::Ok});
  REQUIRE(world.put_and_run(id_of(1)).is_ok());
  std::map<std::string, std::uint64_t> counts;
  for (const auto& entry : world.metrics().entries()) {
    const auto label = entry.labels.find("outcome");
    if (entry.counter != nullptr) {
      counts[entry.name + (label == entry.labels.end() ? "" : "/" + label->second)] = entry.counter->value();
    }
  }
  CHECK(counts["fjord_client_operations_total/applied"] == 1);
  CHECK(counts["fjord_client_operations_total/in_doubt"] == 0);
  CHECK(counts["fjord_client_retries_total"] == 1);
  CHECK(counts["fjord_client_batches_total"] == 2);
}

}  // namespace fjord::test
