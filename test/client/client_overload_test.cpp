#include <numeric>

#include "backoff.h"
#include "client_world.h"
#include "retry_budget.h"

namespace fjord::test {
namespace {

std::string id_of(int n) { return "id:n:t::" + std::to_string(n); }

/// Answers every batch as a whole with BUSY.
ClientWorld::OnExecute busy(std::uint32_t retry_after_ms) {
  return [retry_after_ms](const rpc::Address&, const rpc::Execute&) {
    rpc::ExecuteReply reply;
    reply.status = Status(StatusCode::Busy, "said the test");
    reply.retry_after_ms = retry_after_ms;
    return Result<rpc::ExecuteReply>(std::move(reply));
  };
}

std::size_t operations_sent(const ClientWorld& world) {
  std::size_t sum = 0;
  for (const rpc::Execute& batch : world.batches()) sum += batch.operations.size();
  return sum;
}

}  // namespace

TEST_CASE("retry budget: a part of what is sent, a little by time, and no more than a burst at once") {
  ClientOptions options;
  options.retry_budget_percent = 20;
  options.retry_budget_per_second = 10;
  options.retry_budget_burst = 5;
  RetryBudget budget(options);
  MonotonicTime now{1'000'000};
  const auto taken = [&] {
    int n = 0;
    while (budget.take(now)) ++n;
    return n;
  };
  CHECK(taken() == 5);
  for (int i = 0; i < 15; ++i) budget.operation_sent();
  CHECK(taken() == 3);
  for (int i = 0; i < 1000; ++i) budget.operation_sent();
  CHECK(taken() == 5);
  now = now + milliseconds(200);
  CHECK(taken() == 2);
  // Calls of take() at short intervals do not slow down how the budget refills.
  int n = 0;
  for (int i = 0; i < 1000; ++i) {
    now = now + Duration(300);
    n += budget.take(now) ? 1 : 0;
  }
  CHECK(n == 3);
  now = now + seconds(1000);
  CHECK(taken() == 5);
}

TEST_CASE("backoff: never before the hint, and not all at the same time after it") {
  ClientOptions options;
  Random random(3);
  std::int64_t least = 1'000'000'000;
  std::int64_t most = 0;
  for (int i = 0; i < 1000; ++i) {
    const Duration delay = backoff_delay(options, 1, milliseconds(200), random);
    least = std::min(least, delay.count());
    most = std::max(most, delay.count());
  }
  CHECK(least >= 200'000);
  CHECK(least < 210'000);
  CHECK(most <= 300'000);
  CHECK(most > 290'000);
}

TEST_CASE("a BUSY answer's hint holds back everything for that distributor, not what has another priority") {
  ClientWorld world;
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(milliseconds(20));
  std::vector<std::int64_t> times;
  world.on_execute = [&](const rpc::Address& to, const rpc::Execute& batch) {
    if (batch.operations[0].priority == rpc::Priority::Background) {
      times.push_back(world.now().us);
      return times.size() == 1 ? busy(400)(to, batch) : std::nullopt;
    }
    rpc::ExecuteReply reply;
    reply.results.assign(batch.operations.size(), result_of(StatusCode::Ok));
    return std::optional(Result<rpc::ExecuteReply>(std::move(reply)));
  };
  rpc::Operation operation = remove_operation(id_of(1));
  operation.priority = rpc::Priority::Background;
  world.client->execute(operation, seconds(30), world.keep("first"));
  world.run(milliseconds(50));
  // Finds a second document that belongs to the same distributor.
  const auto snapshot = world.client->snapshot();
  const auto owner = [&](int n) {
    return snapshot->distributor_of(snapshot->bucket_of(DocumentId::parse(id_of(n)).value().gid()));
  };
  int other = 2;
  while (owner(other) != owner(1)) ++other;
  operation.id = id_of(other);
  world.client->execute(operation, seconds(30), world.keep("second"));
  operation.priority = rpc::Priority::Normal;
  operation.id = id_of(other + 1000);
  world.client->execute(operation, seconds(30), world.keep("other priority"));
  world.run(milliseconds(20));
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].first == "other priority");
  world.run(milliseconds(300));
  REQUIRE(times.size() == 1);
  world.run(seconds(1));
  REQUIRE(times.size() >= 2);
  CHECK(times[1] - times[0] >= 400'000);
  CHECK(times[1] - times[0] <= 610'000);
  CHECK(world.metrics().counter("fjord_client_busy_pauses_total", "").value() == 1);
}

TEST_CASE("what waits for the end of a BUSY pause is sent then, even if no other operation is retried") {
  ClientOptions options;
  options.retry_budget_burst = 0;
  options.retry_budget_per_second = 0;
  options.retry_budget_percent = 0;
  ClientWorld world(options);
  world.on_execute = busy(200);
  world.put(id_of(1));
  world.run(milliseconds(20));
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].second.status.code() == StatusCode::Busy);
  world.on_execute = ClientWorld().on_execute;
  world.put(id_of(1));
  world.run(milliseconds(150));
  CHECK(operations_sent(world) == 1);
  world.run(milliseconds(200));  // The client's pause is at most one and a half times the hint of the BUSY answer.
  REQUIRE(world.outcomes.size() == 2);
  CHECK(world.outcomes[1].second.is_ok());
}

TEST_CASE("an unlimited stream of operations against a cluster that is busy sends little, and ends with BUSY") {
  ClientOptions options;
  options.retry_budget_burst = 100;
  ClientWorld world(options);
  world.on_execute = busy(100);
  // The client is given 10,000 operations a second for 10 s.
  int n = 0;
  for (int step = 0; step < 1000; ++step) {
    for (int i = 0; i < 100; ++i) world.get(id_of(n++), seconds(10));
    world.run(milliseconds(10));
  }
  const std::size_t sent = operations_sent(world);
  CHECK(sent < 10'000);
  world.run(seconds(20));
  CHECK(world.outcomes.size() == 100'000);
  const std::uint64_t retries = world.metrics().counter("fjord_client_retries_total", "").value();
  const std::uint64_t first = operations_sent(world) - retries;
  CHECK(retries <= first / 5 + 100 + 10 * 30);
  CHECK(world.metrics().counter("fjord_client_retries_denied_total", "").value() > 0);
  for (const auto& [id, outcome] : world.outcomes) REQUIRE(outcome.outcome == Outcome::NotApplied);
  // The cluster has room again, so all operations succeed.
  world.on_execute = ClientWorld().on_execute;
  world.outcomes.clear();
  for (int i = 0; i < 1000; ++i) world.put(id_of(n++));
  world.run(seconds(3));
  REQUIRE(world.outcomes.size() == 1000);
  for (const auto& [id, outcome] : world.outcomes) REQUIRE(outcome.is_ok());
}

TEST_CASE("without tokens in the budget a write whose answer was lost stays in doubt, and NOT_READY is still retried") {
  ClientOptions options;
  options.retry_budget_burst = 0;
  options.retry_budget_per_second = 0;
  options.retry_budget_percent = 0;
  options.attempt_timeout = milliseconds(100);
  ClientWorld world(options);
  world.answer_batches({StatusCode::Timeout, StatusCode::Ok});
  const OperationOutcome lost = world.put_and_run(id_of(1));
  CHECK(lost.outcome == Outcome::InDoubt);
  CHECK(lost.status.code() == StatusCode::Timeout);
  CHECK(lost.attempts == 1);
  world.answer_batches({StatusCode::Busy, StatusCode::Ok});
  const OperationOutcome busy = world.put_and_run(id_of(2));
  CHECK(busy.outcome == Outcome::NotApplied);
  CHECK(busy.status.code() == StatusCode::Busy);
  world.answer_batches({StatusCode::NotReady, StatusCode::Unavailable, StatusCode::WrongDistribution, StatusCode::Ok});
  CHECK(world.put_and_run(id_of(3)).is_ok());
}

TEST_CASE("the window to a distributor halves after BUSY, and after no answer at all") {
  const bool is_lost = GENERATE(false, true);
  ClientOptions options;
  options.window_operations_max = 64;
  options.attempt_timeout = seconds(1);
  options.backoff_min = options.backoff_max = seconds(2);
  ClientWorld world(options);
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(milliseconds(20));
  world.answer_batches({is_lost ? StatusCode::Timeout : StatusCode::Busy, StatusCode::Timeout, StatusCode::Ok});
  const auto snapshot = world.client->snapshot();
  const auto owner = [&](int n) {
    return snapshot->distributor_of(snapshot->bucket_of(DocumentId::parse(id_of(n)).value().gid()));
  };
  for (int n = 0, count = 0; count < 500; ++n) {
    if (owner(n) != owner(0)) continue;
    world.get(id_of(n));
    ++count;
  }
  world.run(seconds(30));
  REQUIRE(world.batches().size() > 4);
  CHECK(world.batches()[0].operations.size() == 64);
  CHECK(world.batches()[1].operations.size() == 32);
  CHECK(world.batches()[2].operations.size() == 16);
  CHECK(world.batches()[3].operations.size() == 17);  // The window grows by 1 when a batch is answered without BUSY.
  CHECK(world.outcomes.size() == 500);
}

TEST_CASE("what is too much for the client itself ends at once with BUSY") {
  ClientOptions options;
  options.pending_operations_max = 10;
  ClientWorld world(options);
  for (int n = 0; n < 12; ++n) world.put(id_of(n));
  world.run();
  REQUIRE(world.outcomes.size() == 12);
  int refused = 0;
  for (const auto& [id, outcome] : world.outcomes) {
    if (outcome.is_ok()) continue;
    ++refused;
    CHECK(outcome.status.code() == StatusCode::Busy);
    CHECK(outcome.outcome == Outcome::NotApplied);
    CHECK(outcome.attempts == 0);
  }
  CHECK(refused == 2);
  CHECK(world.put_and_run(id_of(1)).is_ok());
  CHECK(operations_sent(world) == 11);
}

TEST_CASE("operations have the client's priority unless they name one, and tell when they have less time than others") {
  ClientOptions options;
  options.priority = rpc::Priority::Background;
  ClientWorld world(options);
  world.put_and_run(id_of(1));
  CHECK(world.batches().back().operations[0].priority == rpc::Priority::Background);
  rpc::Operation operation = remove_operation(id_of(1));
  operation.priority = rpc::Priority::High;
  world.client->execute(operation, seconds(1), world.keep("high"));
  world.run();
  CHECK(world.batches().back().operations[0].priority == rpc::Priority::High);

  const auto snapshot = world.client->snapshot();
  const auto owner = [&](int n) {
    return snapshot->distributor_of(snapshot->bucket_of(DocumentId::parse(id_of(n)).value().gid()));
  };
  int other = 2;
  while (owner(other) != owner(1)) ++other;
  world.transport.set_delay(milliseconds(10));
  world.get(id_of(1));
  world.run(milliseconds(1));
  world.get(id_of(other), milliseconds(300));
  world.get(id_of(1), seconds(2));  // The client queues this get behind the first get of the id.
  world.run();
  const auto batch = world.batches().back();
  for (const auto& sent : world.batches()) {
    for (const rpc::Operation& one : sent.operations) {
      if (one.id == id_of(other) && sent.operations.size() > 1) CHECK(one.timeout_us > 0);
      CHECK(one.timeout_us <= 300'000);
    }
  }
}

}  // namespace fjord::test
