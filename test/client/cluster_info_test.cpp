#include <set>

#include "client_world.h"

namespace fjord::test {
namespace {

const std::string kId = "id:n:t::1";

Status dead(const std::string& why) { return Status(StatusCode::NotReady, why); }

}  // namespace

TEST_CASE("the cluster state is asked for at first use and not before", "[client]") {
  ClientWorld world;
  world.run(seconds(5));
  CHECK(world.transport.sent().empty());
  CHECK(world.client->snapshot() == nullptr);
  CHECK(world.put_and_run(kId).is_ok());
  CHECK(world.questions() == 1);
  CHECK(world.client->snapshot()->state_version() == 1);
}

TEST_CASE("one configured distributor that answers is enough", "[client]") {
  ClientOptions options;
  options.addresses = {"x:1", "y:1", "d1:1"};
  ClientWorld world(options);
  world.dead = {{"x:1", dead("refused")}, {"y:1", Status(StatusCode::Timeout, "silent")}};
  CHECK(world.put_and_run(kId).is_ok());
}

TEST_CASE("when no distributor answers, the error lists each address with its reason", "[client]") {
  ClientOptions options;
  options.addresses = {"x:1", "y:1"};
  ClientWorld world(options);
  world.dead = {{"x:1", dead("connection refused")}, {"y:1", dead("no such host")}};
  const auto check = [](const Status& status) {
    CHECK(status.code() == StatusCode::NotReady);
    CHECK_THAT(status.message(), Catch::Contains("x:1 (connection refused)") && Catch::Contains("y:1 (no such host)"));
  };
  const OperationOutcome outcome = world.put_and_run(kId, seconds(2));
  check(outcome.status);
  CHECK(outcome.outcome == Outcome::NotApplied);
  CHECK(outcome.attempts == 0);
  Status ready;
  world.client->wait_ready(seconds(2), [&](Status status) { ready = std::move(status); });
  world.run();
  check(ready);
  // No operation waits any more, so the client sends no question.
  const std::size_t questions = world.questions();
  world.run();
  CHECK(world.questions() == questions);
}

TEST_CASE("a distributor without a cluster state is no answer yet", "[client]") {
  ClientWorld world;
  world.info = {};
  Status ready;
  world.client->wait_ready(seconds(10), [&](Status status) { ready = std::move(status); });
  world.put(kId);
  world.run(seconds(3));
  CHECK(world.outcomes.empty());
  CHECK(world.client->snapshot() == nullptr);
  world.info = info_of_version(4);
  world.run(seconds(3));
  CHECK(ready == Status::ok());
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].second.is_ok());
}

TEST_CASE("a wrong target that tells the newer state is left at once", "[client]") {
  ClientWorld world;
  world.info = info_of_version(1, "distributor:1 storage:2");
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(seconds(1));
  REQUIRE(world.questions() == 1);
  world.on_execute = [](const rpc::Address& to, const rpc::Execute& batch) {
    rpc::ExecuteReply reply;
    const bool is_old = batch.state_version < 2;
    reply.results.assign(batch.operations.size(),
                         result_of(is_old || to == "d0:1" ? StatusCode::WrongDistribution : StatusCode::Ok));
    if (is_old) reply.newer_info = info_of_version(2, "distributor:2 .0.s:d storage:2");
    return Result<rpc::ExecuteReply>(std::move(reply));
  };
  const MonotonicTime start = world.now();
  MonotonicTime end;
  OperationOutcome result;
  world.client->put(kId, {"h", "b"}, seconds(30), [&](OperationOutcome outcome) {
    result = std::move(outcome);
    end = world.now();
  });
  world.run();
  CHECK(result.is_ok());
  CHECK(result.attempts == 2);
  CHECK(world.client->snapshot()->state_version() == 2);
  CHECK(end - start < milliseconds(3));  // Two round trips of 1 ms each, without a pause.
  CHECK(world.questions() == 1);
}

TEST_CASE("a dead distributor makes the client ask another one for the state", "[client]") {
  ClientWorld world;
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(seconds(1));
  const auto snapshot = world.client->snapshot();
  const auto owner = *snapshot->distributor_of(snapshot->bucket_of(DocumentId::parse(kId).value().gid()));
  world.dead = {{"d" + std::to_string(owner) + ":1", dead("connection refused")}};
  world.info = info_of_version(2, "distributor:2 ." + std::to_string(owner) + ".s:d storage:2");
  const OperationOutcome outcome = world.put_and_run(kId);
  CHECK(outcome.is_ok());
  CHECK(outcome.attempts == 2);
}

TEST_CASE("without any distributor up an operation is unavailable and comes back with one", "[client]") {
  ClientWorld world;
  world.info = info_of_version(1, "distributor:1 .0.s:d storage:2");
  const OperationOutcome outcome = world.put_and_run(kId, seconds(2));
  CHECK(outcome.status.code() == StatusCode::Unavailable);
  CHECK(outcome.outcome == Outcome::NotApplied);
  world.put(kId);
  world.run(seconds(2));
  world.info = info_of_version(2);
  world.run();
  CHECK(world.outcomes.back().second.is_ok());
}

TEST_CASE("queued operations take the new way when the state changes", "[client]") {
  ClientWorld world;
  world.info = info_of_version(1, "distributor:1 storage:2");
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(seconds(1));
  world.on_execute = [](const rpc::Address& to, const rpc::Execute& batch) -> std::optional<Result<rpc::ExecuteReply>> {
    if (to == "d0:1") return std::nullopt;
    rpc::ExecuteReply reply;
    reply.results.assign(batch.operations.size(), result_of(StatusCode::Ok));
    return Result<rpc::ExecuteReply>(std::move(reply));
  };
  world.put("id:n:t::2");  // This put gets no answer, so the next operation for d0 is queued.
  world.run(milliseconds(2));
  world.put(kId);
  world.run(milliseconds(2));
  world.client->take_cluster_info(info_of_version(2, "distributor:2 .0.s:d storage:2"));
  world.run(milliseconds(10));
  REQUIRE(world.outcomes.size() == 1);
  CHECK(world.outcomes[0].first == kId);
  CHECK(world.outcomes[0].second.is_ok());
}

TEST_CASE("older news are not taken", "[client]") {
  ClientWorld world;
  world.info = info_of_version(5);
  REQUIRE(world.put_and_run(kId).is_ok());
  world.client->take_cluster_info(info_of_version(4));
  world.run(seconds(1));
  CHECK(world.client->snapshot()->state_version() == 5);
}

TEST_CASE("refreshing the schemas asks anew and brings the types", "[client]") {
  ClientWorld world;
  REQUIRE(world.put_and_run(kId).is_ok());
  REQUIRE(world.client->snapshot()->types()->find("music") == nullptr);
  world.info.schema_version = 2;
  world.info.schemas = {"document music {\n  field title type string { header }\n}\n"};
  Status status(StatusCode::Unknown, "");
  world.client->refresh_schemas(seconds(5), [&](Status s) { status = std::move(s); });
  world.run(seconds(1));
  CHECK(status == Status::ok());
  CHECK(world.questions() == 2);
  CHECK(world.client->snapshot()->types()->find("music") != nullptr);
  CHECK(world.transport.sent_of<rpc::GetClusterInfo>().back().known_state_version == 1);
}

TEST_CASE("waiting for a schema version lasts until a distributor has it", "[client]") {
  ClientWorld world;
  world.info.schema_version = 2;
  world.info.schemas = {"document a {\n}\n"};
  std::vector<Status> ended;
  world.client->wait_schema_version(3, seconds(10), [&](Status s) { ended.push_back(std::move(s)); });
  world.client->wait_schema_version(4, seconds(10), [&](Status s) { ended.push_back(std::move(s)); });
  world.run(seconds(2));
  CHECK(ended.empty());
  world.info.schema_version = 3;
  world.info.schemas = {"document b {\n}\n"};
  world.run();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0] == Status::ok());
  CHECK(ended[1].code() == StatusCode::NotReady);
  CHECK_THAT(ended[1].message(), Catch::Contains("version 3, not 4"));
}

TEST_CASE("cluster information that comes with an answer ends a wait, while a distributor is silent", "[client]") {
  ClientWorld world;
  world.transport.set_delay(seconds(2));  // Answers take longer than the client waits for a distributor.
  std::optional<Status> ready;
  world.client->wait_ready(milliseconds(500), [&](Status status) { ready = std::move(status); });
  world.run(milliseconds(100));
  REQUIRE_FALSE(ready);
  world.client->take_cluster_info(info_of_version(1));
  world.run(seconds(1));
  REQUIRE(ready);
  CHECK(*ready == Status::ok());
}

TEST_CASE("after a useful answer the pauses between questions begin with the shortest one", "[client]") {
  ClientOptions options;
  options.backoff_min = milliseconds(100);
  ClientWorld world(options);
  world.dead = {{"d0:1", dead("refused")}};
  Status ready(StatusCode::Unknown, "");
  world.client->wait_ready(seconds(20), [&](Status status) { ready = std::move(status); });
  world.run(seconds(5));
  world.dead.clear();
  world.run(seconds(5));
  REQUIRE(ready == Status::ok());
  const std::size_t questions = world.questions();
  world.client->wait_schema_version(2, seconds(5), [](Status) {});
  // The first question is sent at once, and the second one at most 100 ms after the answer to the first.
  world.run(milliseconds(103));
  CHECK(world.questions() == questions + 2);
}

}  // namespace fjord::test
