#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>

#include "transport_fixture.h"

namespace fjord::rpc {
namespace {

using test::TransportFixture;

/// Keeps Execute calls until the test answers or drops them.
class HoldingService final : public Service {
 public:
  bool handle(Request& request, Responder& respond) override {
    if (!std::holds_alternative<Execute>(request)) return false;
    std::lock_guard lock(mutex_);
    held_.emplace_back(std::move(std::get<Execute>(request)), std::move(respond));
    return true;
  }
  std::size_t held() const {
    std::lock_guard lock(mutex_);
    return held_.size();
  }
  std::vector<std::pair<Execute, Responder>> take() {
    std::lock_guard lock(mutex_);
    return std::exchange(held_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<Execute, Responder>> held_;
};

/// Answers at once, with each operation's id as the JSON of its result.
class EchoService final : public Service {
 public:
  bool handle(Request& request, Responder& respond) override {
    auto* execute = std::get_if<Execute>(&request);
    if (execute == nullptr) return false;
    ExecuteReply reply;
    for (Operation& operation : execute->operations) {
      reply.results.emplace_back();
      reply.results.back().json = std::move(operation.id);
      reply.results.back().body = std::move(operation.body);
    }
    respond(std::move(reply));
    return true;
  }
};

Execute execute_with_id(std::string id) {
  Execute execute;
  execute.operations.emplace_back();
  execute.operations.back().id = std::move(id);
  return execute;
}

/// Collects the outcomes of some calls. The callbacks on the executor fill it.
struct Outcomes {
  std::mutex mutex;
  std::vector<Result<ExecuteReply>> results;
  std::atomic<std::size_t> count{0};
  std::atomic<std::size_t> on_wrong_executor{0};

  auto collect(TransportFixture& world) {
    return [this, &world](Result<ExecuteReply> result) {
      std::lock_guard lock(mutex);
      if (!world.executor().is_current()) ++on_wrong_executor;
      results.push_back(std::move(result));
      ++count;
    };
  }
  void call(TransportFixture& world, const Address& to, Execute request, Duration timeout = seconds(10)) {
    rpc::call(world.transport(), to, std::move(request), timeout, world.executor(), collect(world));
  }
  bool wait(TransportFixture& world, std::size_t n) {
    return world.run_until([&] { return count.load() >= n; });
  }
  StatusCode code(std::size_t i) {
    std::lock_guard lock(mutex);
    return results.at(i) ? results[i]->status.code() : results[i].error().code();
  }
};

TEST_CASE("transport: the answer comes on the executor that the caller named", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  EchoService service;
  const Address address = world->listen({&service});
  Outcomes outcomes;
  outcomes.call(*world, address, execute_with_id("id:a:b::c"));
  REQUIRE(outcomes.wait(*world, 1));
  REQUIRE(outcomes.results[0]);
  CHECK(outcomes.results[0]->results.at(0).json == "id:a:b::c");
  CHECK(outcomes.on_wrong_executor == 0);
}

TEST_CASE("transport: calls answered in another order get their own answers", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  HoldingService service;
  const Address address = world->listen({&service});
  constexpr std::size_t kCalls = 500;
  std::mutex mutex;
  std::size_t right = 0;
  std::atomic<std::size_t> count{0};
  for (std::size_t i = 0; i < kCalls; ++i) {
    call(world->transport(), address, execute_with_id(std::to_string(i)), seconds(10), world->executor(),
         [&, i](Result<ExecuteReply> result) {
           std::lock_guard lock(mutex);
           if (result && result->results.at(0).json == std::to_string(i)) ++right;
           ++count;
         });
  }
  REQUIRE(world->run_until([&] { return service.held() == kCalls; }));
  world->elsewhere([&] {
    auto held = service.take();
    for (auto it = held.rbegin(); it != held.rend(); ++it) {
      ExecuteReply reply;
      reply.results.emplace_back();
      reply.results.back().json = it->first.operations.at(0).id;
      it->second(std::move(reply));
    }
  });
  REQUIRE(world->run_until([&] { return count.load() == kCalls; }));
  CHECK(right == kCalls);
}

TEST_CASE("transport: a message of several megabytes arrives whole", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  EchoService service;
  const Address address = world->listen({&service});
  Execute request = execute_with_id("large");
  for (int i = 0; i < 5'000'000; ++i) request.operations[0].body.push_back(static_cast<char>(i * 7 + i / 256));
  const std::string body = request.operations[0].body;
  Outcomes outcomes;
  outcomes.call(*world, address, std::move(request));
  outcomes.call(*world, address, execute_with_id("small"));
  REQUIRE(outcomes.wait(*world, 2));
  std::size_t found = 0;
  for (const auto& result : outcomes.results) {
    REQUIRE(result);
    if (result->results.at(0).json == "large" && result->results[0].body == body) ++found;
    if (result->results[0].json == "small" && result->results[0].body.empty()) ++found;
  }
  CHECK(found == 2);
}

TEST_CASE("transport: where nobody listens, the call certainly did nothing or timed out", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  const Address address = world->dead_address();
  Outcomes outcomes;
  for (int i = 0; i < 10; ++i) outcomes.call(*world, address, execute_with_id("a"), milliseconds(300));
  REQUIRE(outcomes.wait(*world, 10));
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK((outcomes.code(i) == StatusCode::NotReady || outcomes.code(i) == StatusCode::Timeout));
  }
  CHECK(outcomes.on_wrong_executor == 0);
}

TEST_CASE("transport: a call that is not answered times out once, and a late answer is dropped", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  HoldingService service;
  EchoService echo;
  const Address address = world->listen({&service});
  const Address other = world->listen({&echo});
  Outcomes outcomes;
  outcomes.call(*world, address, execute_with_id("a"), milliseconds(50));
  REQUIRE(outcomes.wait(*world, 1));
  CHECK(outcomes.code(0) == StatusCode::Timeout);
  REQUIRE(world->run_until([&] { return service.held() == 1; }));
  service.take()[0].second(ExecuteReply{});
  // A later call on the same connection shows that the late answer has arrived.
  outcomes.call(*world, address, execute_with_id("b"));
  REQUIRE(world->run_until([&] { return service.held() == 1; }));
  service.take()[0].second(ExecuteReply{});
  outcomes.call(*world, other, execute_with_id("c"));
  REQUIRE(outcomes.wait(*world, 3));
  CHECK(outcomes.count == 3);
}

TEST_CASE("transport: a dropped responder answers NotReady", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  HoldingService service;
  const Address address = world->listen({&service});
  Outcomes outcomes;
  outcomes.call(*world, address, execute_with_id("a"));
  REQUIRE(world->run_until([&] { return service.held() == 1; }));
  world->elsewhere([&] { service.take(); });
  REQUIRE(outcomes.wait(*world, 1));
  CHECK(outcomes.code(0) == StatusCode::NotReady);
}

TEST_CASE("transport: a call that no service there knows is NotImplemented", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  EchoService service;
  const Address address = world->listen({&service});
  std::atomic<int> code{-1};
  call(world->transport(), address, GetStatus{}, seconds(10), world->executor(),
       [&](Result<GetStatusReply> result) { code = result ? -2 : static_cast<int>(result.error().code()); });
  REQUIRE(world->run_until([&] { return code.load() != -1; }));
  CHECK(code == static_cast<int>(StatusCode::NotImplemented));
}

TEST_CASE("transport: a receiver that goes away with a call is in doubt, and others do not notice", "[rpc]") {
  const auto world = GENERATE(test::make_thrift_fixture, test::make_sim_fixture)();
  HoldingService service;
  EchoService echo;
  const Address address = world->listen({&service});
  const Address other = world->listen({&echo});
  Outcomes outcomes;
  outcomes.call(*world, address, execute_with_id("a"), seconds(2));
  REQUIRE(world->run_until([&] { return service.held() == 1; }));
  world->stop_listening(address);
  REQUIRE(outcomes.wait(*world, 1));
  CHECK(outcomes.code(0) == StatusCode::Timeout);
  service.take();  // A responder may outlive its server.
  outcomes.call(*world, other, execute_with_id("b"));
  REQUIRE(outcomes.wait(*world, 2));
  CHECK(outcomes.code(1) == StatusCode::Ok);
}

}  // namespace
}  // namespace fjord::rpc
