#include <set>

#include "client_world.h"

namespace fjord::test {
namespace {

std::optional<Result<rpc::Reply>> reply(rpc::Reply value) { return Result<rpc::Reply>(std::move(value)); }

}  // namespace

TEST_CASE("a call to any distributor goes on to the next one that is ready", "[client]") {
  ClientOptions options;
  options.addresses = {"a:1", "b:1", "c:1"};
  ClientWorld world(options);
  world.dead = {{"a:1", Status(StatusCode::NotReady, "refused")}};
  world.on_other = [](const rpc::Address& to, rpc::Request&) {
    rpc::GetStatusReply answer;
    if (to == "b:1") answer.status = Status(StatusCode::NotReady, "no controller");
    answer.nodes.resize(1);
    return reply(std::move(answer));
  };
  for (int i = 0; i < 10; ++i) {
    std::optional<Result<rpc::GetStatusReply>> got;
    world.client->call_any(rpc::GetStatus{}, seconds(5), [&](auto answer) { got = std::move(answer); });
    world.run();
    REQUIRE(got);
    REQUIRE(got->has_value());
    CHECK((*got)->status == Status::ok());
    CHECK((*got)->nodes.size() == 1);
  }
}

TEST_CASE("an answer with an error is passed on and not asked for again", "[client]") {
  ClientWorld world;
  int calls = 0;
  world.on_other = [&](const rpc::Address&, rpc::Request&) {
    ++calls;
    return reply(rpc::DeploySchemasReply{Status(StatusCode::InvalidArgument, "line 3"), 0, {}});
  };
  std::optional<Result<rpc::DeploySchemasReply>> got;
  world.client->call_any(rpc::DeploySchemas{{"x"}}, seconds(5), [&](auto answer) { got = std::move(answer); });
  world.run();
  REQUIRE(got);
  CHECK((**got).status == Status(StatusCode::InvalidArgument, "line 3"));
  CHECK(calls == 1);
}

TEST_CASE("a call that nobody takes ends at its deadline with every address and reason", "[client]") {
  ClientOptions options;
  options.addresses = {"a:1", "b:1"};
  ClientWorld world(options);
  world.dead = {{"a:1", Status(StatusCode::NotReady, "refused")}, {"b:1", Status(StatusCode::NotReady, "starting")}};
  std::optional<Result<rpc::GetStatusReply>> got;
  const MonotonicTime start = world.now();
  MonotonicTime end;
  world.client->call_any(rpc::GetStatus{}, seconds(3), [&](auto answer) {
    got = std::move(answer);
    end = world.now();
  });
  world.run();
  REQUIRE(got);
  CHECK(got->error().code() == StatusCode::NotReady);
  CHECK_THAT(got->error().message(), Catch::Contains("a:1 (NOT_READY: refused)") &&
                                         Catch::Contains("b:1 (NOT_READY: starting)") && Catch::Contains("getStatus"));
  CHECK(end - start <= seconds(3));
  CHECK(end - start >= seconds(1));
}

TEST_CASE("after a lost answer the next distributor is asked, but a job stays where it may run", "[client]") {
  ClientOptions options;
  options.addresses = {"a:1", "b:1"};
  ClientWorld world(options);
  std::vector<rpc::Address> order;
  world.on_other = [&](const rpc::Address& to, rpc::Request& request) -> std::optional<Result<rpc::Reply>> {
    order.push_back(to);
    if (order.size() == 1) return std::nullopt;
    return Result<rpc::Reply>(rpc::error_reply(request, Status::ok()));
  };
  bool ended = false;
  SECTION("status") {
    world.client->call_any(rpc::GetStatus{}, seconds(30), [&](auto answer) { ended = answer.has_value(); });
    world.run();
    CHECK(ended);
    REQUIRE(order.size() == 2);
    CHECK(order[0] != order[1]);
  }
  SECTION("job") {
    world.client->call_any(rpc::SubmitJob{"job", {}}, seconds(30), [&](auto answer) { ended = answer.has_value(); });
    world.run();
    CHECK(ended);
    REQUIRE(order.size() == 2);
    CHECK(order[0] == order[1]);
  }
}

TEST_CASE("a call to all distributors has one answer each, in their order", "[client]") {
  ClientWorld world;
  world.on_other = [](const rpc::Address& to, rpc::Request&) -> std::optional<Result<rpc::Reply>> {
    if (to == "d1:1") return std::nullopt;
    rpc::ListJobsReply answer;
    answer.jobs.resize(2);
    return reply(std::move(answer));
  };
  std::vector<std::pair<rpc::Address, Result<rpc::ListJobsReply>>> got;
  world.client->call_all(rpc::ListJobs{}, seconds(5), [&](auto answers) { got = std::move(answers.value()); });
  world.run();
  REQUIRE(got.size() == 2);
  CHECK(got[0].first == "d0:1");
  CHECK(got[0].second->jobs.size() == 2);
  CHECK(got[1].first == "d1:1");
  CHECK(got[1].second.status().code() == StatusCode::Timeout);
}

TEST_CASE("a call to any distributor reaches one that came up after the last cluster state", "[client]") {
  ClientWorld world;
  world.info = info_of_version(1, "distributor:1 storage:2");
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(seconds(1));
  world.info = info_of_version(2, "distributor:2 .0.s:d storage:2");
  world.on_other = [](const rpc::Address& to, rpc::Request& request) {
    const Status status = to == "d1:1" ? Status::ok() : Status(StatusCode::NotReady, "no controller");
    return reply(rpc::error_reply(request, status));
  };
  std::optional<Result<rpc::GetStatusReply>> got;
  world.client->call_any(rpc::GetStatus{}, seconds(5), [&](auto answer) { got = std::move(answer); });
  world.run();
  REQUIRE(got);
  REQUIRE(got->has_value());
  CHECK((*got)->status == Status::ok());
}

TEST_CASE("a call to all asks for the cluster state when a distributor does not answer, and only then", "[client]") {
  ClientWorld world;
  world.client->wait_ready(seconds(1), [](Status) {});
  world.run(seconds(1));
  world.on_other = [](const rpc::Address&, rpc::Request& request) {
    return reply(rpc::error_reply(request, Status::ok()));
  };
  const auto count_answers = [&] {
    std::size_t answers = 0;
    world.client->call_all(rpc::ListJobs{}, seconds(5), [&](auto got) { answers = got.value().size(); });
    world.run();
    return answers;
  };
  const std::size_t questions = world.questions();
  CHECK(count_answers() == 2);
  CHECK(world.questions() == questions);
  world.dead = {{"d1:1", Status(StatusCode::NotReady, "refused")}};
  world.info = info_of_version(2, "distributor:2 .1.s:d storage:2");
  CHECK(count_answers() == 2);
  CHECK(world.client->snapshot()->state_version() == 2);
  CHECK(count_answers() == 1);
}

TEST_CASE("a call to all leaves out distributors that are down", "[client]") {
  ClientWorld world;
  world.info = info_of_version(1, "distributor:2 .0.s:d storage:2");
  world.on_other = [](const rpc::Address&, rpc::Request& request) {
    return reply(rpc::error_reply(request, Status::ok()));
  };
  std::size_t answers = 0;
  world.client->call_all(rpc::ListJobs{}, seconds(5), [&](auto got) { answers = got.value().size(); });
  world.run();
  CHECK(answers == 1);
}

TEST_CASE("ids of new jobs differ", "[client]") {
  ClientWorld world;
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) ids.insert(world.client->new_job_id());
  CHECK(ids.size() == 100);
}

}  // namespace fjord::test
