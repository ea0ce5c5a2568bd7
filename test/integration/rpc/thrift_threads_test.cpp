// The thread that works on a message; transports and servers that share threads.

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fjord/common/check.h"
#include "fjord/common/scheduler.h"
#include "fjord/rpc/short_work.h"
#include "fjord/rpc/thrift_transport.h"

namespace fjord::rpc {
namespace {

/// Answers an Execute with as many results, and notes the thread. `hold` keeps the responders.
class CountingService final : public Service {
 public:
  bool handle(Request& request, Responder& respond) override {
    const auto* batch = std::get_if<Execute>(&request);
    if (batch == nullptr) return false;
    thread = std::this_thread::get_id();
    ++taken;
    taken.notify_all();
    ExecuteReply reply;
    reply.results.resize(batch->operations.size());
    for (std::size_t i = 0; i < reply.results.size(); ++i) reply.results[i].header = batch->operations[i].header;
    if (hold) {
      held.push_back(std::move(respond));
    } else {
      respond(std::move(reply));
    }
    return true;
  }
  std::atomic<std::thread::id> thread;
  std::atomic<int> taken{0};
  std::atomic<bool> hold{false};
  std::vector<Responder> held;  // Used by the only I/O thread, and after its end.
};

struct Answer {
  Status status;
  std::thread::id thread;
};

struct Fixture {
  std::unique_ptr<ThriftServer> listen(Service& service) {
    ThriftServerOptions options;
    options.shared_threads = threads;
    auto server = ThriftServer::listen(options, {&service}, metrics);
    REQUIRE(server);
    return std::move(*server);
  }
  std::unique_ptr<ThriftTransport> make_transport() {
    ThriftTransportOptions options;
    options.shared_threads = threads;
    return std::make_unique<ThriftTransport>(options, metrics);
  }
  Answer call(Transport& transport, const Address& to, std::size_t operations = 1) {
    std::promise<Answer> answer;
    Execute request;
    request.operations.resize(operations);
    rpc::call(transport, to, std::move(request), seconds(20), *executor, [&](Result<ExecuteReply> reply) {
      answer.set_value({reply ? reply->status : reply.error(), std::this_thread::get_id()});
    });
    return answer.get_future().get();
  }

  MetricRegistry metrics;
  ThreadScheduler scheduler;
  std::unique_ptr<Executor> executor = scheduler.make_executor("caller");
  std::shared_ptr<IoThreads> threads = std::make_shared<IoThreads>("shared", 1);
};

}  // namespace

TEST_CASE("thrift threads: one thread serves a request and runs the callback of a short answer", "[rpc]") {
  Fixture f;
  CountingService service;
  const auto server = f.listen(service);
  const auto transport = f.make_transport();
  // The first answers can come while the executor's thread is not idle yet.
  Answer answer;
  do {
    answer = f.call(*transport, server->address(), kShortBatchMax);
    REQUIRE(answer.status);
  } while (answer.thread != service.thread.load());
}

TEST_CASE("thrift threads: the callback of a long answer runs on the executor's thread", "[rpc]") {
  Fixture f;
  CountingService service;
  const auto server = f.listen(service);
  const auto transport = f.make_transport();
  for (int i = 0; i < 100; ++i) {
    const Answer answer = f.call(*transport, server->address(), kShortBatchMax + 1);
    REQUIRE(answer.status);
    REQUIRE(answer.thread != service.thread.load());
  }
}

TEST_CASE("thrift threads: a callback can call the same peer again, many times", "[rpc]") {
  Fixture f;
  CountingService service;
  const auto server = f.listen(service);
  const auto transport = f.make_transport();
  std::promise<void> done;
  int left = 1000;
  std::function<void()> next = [&] {
    Execute request;
    request.operations.resize(1);
    rpc::call(*transport, server->address(), std::move(request), seconds(20), *f.executor,
              [&](const Result<ExecuteReply>& reply) {
                FJORD_CHECK(reply.has_value());
                if (--left == 0) {
                  done.set_value();
                } else {
                  next();
                }
              });
  };
  f.executor->post([&] { next(); });
  done.get_future().wait();
  CHECK(service.taken == 1000);
}

TEST_CASE("thrift threads: the end of a server or transport leaves others on the same threads alone", "[rpc]") {
  Fixture f;
  CountingService service;
  CountingService holding;
  holding.hold = true;
  const auto server = f.listen(service);
  auto ending = f.listen(holding);
  auto transport = f.make_transport();
  auto leaving = f.make_transport();
  CHECK(f.call(*leaving, server->address()).status);

  // A call that is not answered, at the end of its server, and one at the end of its transport.
  std::promise<Status> broken;
  std::atomic<bool> dropped_ran{false};
  rpc::call(*transport, ending->address(), Execute{}, seconds(20), *f.executor,
            [&](const Result<ExecuteReply>& reply) { broken.set_value(reply.status()); });
  rpc::call(*leaving, ending->address(), Execute{}, seconds(20), *f.executor,
            [&](const Result<ExecuteReply>&) { dropped_ran = true; });
  for (int taken = holding.taken; taken < 2; taken = holding.taken) holding.taken.wait(taken);
  leaving.reset();
  ending.reset();
  CHECK(broken.get_future().get().code() == StatusCode::Timeout);
  CHECK(f.call(*transport, server->address()).status);
  CHECK(f.metrics.gauge("fjord_rpc_connections", "", {{"side", "server"}}).value() == 1);
  CHECK(f.metrics.gauge("fjord_rpc_connections", "", {{"side", "client"}}).value() == 1);
  CHECK_FALSE(dropped_ran);
  for (Responder& respond : holding.held) respond(ExecuteReply{});  // Late answers go nowhere.
  CHECK(f.call(*transport, server->address()).status);
}

TEST_CASE("thrift threads: threads end after all that use them", "[rpc]") {
  Fixture f;
  CountingService service;
  auto server = f.listen(service);
  const Address address = server->address();
  const auto transport = f.make_transport();
  f.threads.reset();
  CHECK(f.call(*transport, address).status);
  server.reset();
  CHECK(f.call(*transport, address).status.code() != StatusCode::Ok);
}

TEST_CASE("thrift threads: messages of which the kernel takes a part at a time arrive whole", "[rpc]") {
  Fixture f;
  CountingService service;
  const auto server = f.listen(service);
  const auto transport = f.make_transport();
  Execute request;
  std::vector<std::string> sent;
  for (std::size_t i = 0; i < 200; ++i)
    sent.emplace_back(i % 3 == 0 ? 300'000 : 5'000, static_cast<char>('a' + i % 23));
  for (const std::string& header : sent) request.operations.emplace_back().header = header;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::promise<Result<ExecuteReply>>> answers(3);
    for (auto& answer : answers) {
      rpc::call(*transport, server->address(), request, seconds(60), *f.executor,
                [&](Result<ExecuteReply> reply) { answer.set_value(std::move(reply)); });
    }
    for (auto& answer : answers) {
      const Result<ExecuteReply> reply = answer.get_future().get();
      REQUIRE(reply);
      REQUIRE(reply->results.size() == sent.size());
      bool is_equal = true;
      for (std::size_t i = 0; i < sent.size(); ++i) is_equal = is_equal && reply->results[i].header == sent[i];
      CHECK(is_equal);
    }
  }
}

TEST_CASE("short work: small batches, but no writes to a disk and no answers that take long", "[rpc]") {
  Execute execute;
  execute.operations.resize(kShortBatchMax);
  CHECK(is_short(execute));
  execute.operations.emplace_back();
  CHECK_FALSE(is_short(execute));

  Apply apply;
  apply.operations.resize(kShortBatchMax);
  for (StorageOperation& operation : apply.operations) operation.kind = OperationKind::Get;
  CHECK(is_short(apply));
  apply.operations.back().kind = OperationKind::Put;
  CHECK_FALSE(is_short(apply));
  apply.operations.back().kind = OperationKind::Get;
  apply.operations.push_back(apply.operations.back());
  CHECK_FALSE(is_short(apply));

  ExecuteReply executed;
  executed.results.resize(kShortBatchMax);
  CHECK(is_short(Reply(executed)));
  CHECK(is_short(Reply(ExecuteStrictReply{.status = Status::ok(), .batch = executed})));
  executed.results.emplace_back();
  CHECK_FALSE(is_short(Reply(executed)));
  CHECK_FALSE(is_short(Reply(ExecuteStrictReply{.status = Status::ok(), .batch = executed})));
  ApplyReply applied;
  applied.results.resize(kShortBatchMax + 1);
  CHECK_FALSE(is_short(Reply(applied)));
  CHECK_FALSE(is_short(Reply(CancelJobReply{})));
}

}  // namespace fjord::rpc
