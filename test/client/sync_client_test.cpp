#include "fjord/client/sync_client.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "client_world.h"
#include "fjord/client/feeder.h"

namespace fjord::test {
namespace {

/// A transport that answers at once with a function's result, on the caller's executor. Threading: every thread.
class InstantTransport final : public rpc::Transport {
 public:
  explicit InstantTransport(std::function<rpc::Reply(const rpc::Address&, rpc::Request&)> script)
      : script_(std::move(script)) {}
  void call(const rpc::Address& to, rpc::Request request, Duration, Executor& executor,
            rpc::ReplyFunction done) override {
    std::lock_guard lock(mutex_);
    executor.post([reply = script_(to, request), done = std::move(done)]() mutable {
      done(Result<rpc::Reply>(std::move(reply)));
    });
  }

 private:
  std::mutex mutex_;
  std::function<rpc::Reply(const rpc::Address&, rpc::Request&)> script_;
};

/// A client with a thread of its own.
struct ThreadWorld {
  explicit ThreadWorld(std::function<std::optional<rpc::Reply>(const rpc::Address&, rpc::Request&)> script = {})
      : transport([this, script](const rpc::Address& to, rpc::Request& request) {
          if (script) {
            if (auto reply = script(to, request)) return std::move(*reply);
          }
          return standard(request);
        }) {
    ClientOptions options;
    options.addresses = {"d0:1"};
    client = std::make_unique<AsyncClient>(options, runtime, transport, *executor);
  }

  rpc::Reply standard(rpc::Request& request) {
    if (std::holds_alternative<rpc::GetClusterInfo>(request)) {
      return rpc::GetClusterInfoReply{Status::ok(), info_of_version(1)};
    }
    if (const auto* batch = std::get_if<rpc::Execute>(&request)) {
      rpc::ExecuteReply reply;
      reply.results.assign(batch->operations.size(), result_of(StatusCode::Ok));
      return reply;
    }
    return rpc::error_reply(request, Status::ok());
  }

  SystemClock clock;
  ThreadScheduler scheduler;
  std::unique_ptr<BulkExecutor> bulk = make_inline_bulk_executor();
  sim::SimEnv env;
  Random random{3};
  MetricRegistry metrics;
  TunableRegistry tunables;
  Runtime runtime{clock, scheduler, *bulk, env, random, metrics, tunables};
  InstantTransport transport;
  std::unique_ptr<Executor> executor = scheduler.make_executor("client");
  std::unique_ptr<AsyncClient> client;
};

}  // namespace

TEST_CASE("blocking operations return their outcome", "[sync_client]") {
  ThreadWorld world([](const rpc::Address&, rpc::Request& request) -> std::optional<rpc::Reply> {
    const auto* batch = std::get_if<rpc::Execute>(&request);
    if (batch == nullptr || batch->operations[0].kind != rpc::OperationKind::Get) return std::nullopt;
    rpc::ExecuteReply reply;
    reply.results.push_back(result_of(batch->operations[0].want_json ? StatusCode::Ok : StatusCode::NotFound));
    reply.results[0].json = "{}";
    return reply;
  });
  SyncClient sync(*world.client);
  CHECK(sync.wait_ready() == Status::ok());
  CHECK(sync.put("id:n:t::1", {"h", "b"}).is_ok());
  CHECK(sync.put_json("id:n:t::1", "{}").is_ok());
  CHECK(sync.remove("id:n:t::1").outcome == Outcome::Applied);
  CHECK(sync.get("id:n:t::1").status.code() == StatusCode::NotFound);
  CHECK(sync.get_json("id:n:t::1").json == "{}");
  CHECK(sync.refresh_schemas() == Status::ok());
}

TEST_CASE("several threads may wait at once", "[sync_client]") {
  ThreadWorld world;
  SyncClient sync(*world.client);
  std::atomic<int> ok{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        if (sync.put("id:n:t::" + std::to_string(i % 7 + t), {"h", "b"}).is_ok()) ++ok;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ok == 400);
  CHECK(world.client->pending() == 0);
}

TEST_CASE("a feeder makes several producers wait for room", "[sync_client]") {
  ThreadWorld world;
  std::atomic<int> results{0};
  std::atomic<std::size_t> pending_max{0};
  Feeder* feeding = nullptr;
  Feeder::Options options;
  options.window_operations = 3;
  options.on_result = [&](std::uint64_t, OperationOutcome) {
    ++results;
    pending_max = std::max(pending_max.load(), feeding->pending());  // Only the executor's thread writes pending_max.
  };
  Feeder feeder(*world.client, std::move(options));
  feeding = &feeder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        rpc::Operation operation;
        operation.kind = rpc::OperationKind::Put;
        operation.id = "id:n:t::" + std::to_string(t * 1000 + i);
        feeder.submit(std::move(operation));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  feeder.flush();
  CHECK(results == 600);
  CHECK(pending_max <= 3);
  CHECK(feeder.stats().ok == 600);
  CHECK(feeder.pending() == 0);
}

TEST_CASE("jobs of all distributors are one list, and a job is cancelled where it is", "[sync_client]") {
  ThreadWorld world([](const rpc::Address& to, rpc::Request& request) -> std::optional<rpc::Reply> {
    if (std::holds_alternative<rpc::ListJobs>(request)) {
      rpc::ListJobsReply reply;
      reply.jobs.resize(1);
      reply.jobs[0].job_id = to;
      reply.jobs[0].submitted_unix_us = to == "d0:1" ? 9 : 5;
      return reply;
    }
    if (const auto* control = std::get_if<rpc::ControlJob>(&request)) {
      return rpc::ControlJobReply{control->job_id == to ? Status::ok() : Status(StatusCode::NotFound, "no such job")};
    }
    return std::nullopt;
  });
  SyncClient sync(*world.client);
  const auto jobs = sync.list_jobs();
  REQUIRE(jobs);
  REQUIRE(jobs->size() == 2);
  CHECK((*jobs)[0].job_id == "d1:1");
  CHECK(sync.cancel_job("d1:1") == Status::ok());
  CHECK(sync.cancel_job("other").code() == StatusCode::NotFound);
  CHECK(!sync.submit_job({}).value().empty());
  CHECK(sync.submit_job({}, "mine").value() == "mine");
  CHECK(sync.status());
}

TEST_CASE("a list of jobs with a distributor missing is an error, unless the job was found", "[sync_client]") {
  ThreadWorld world([](const rpc::Address& to, rpc::Request& request) -> std::optional<rpc::Reply> {
    if (!std::holds_alternative<rpc::ListJobs>(request)) return std::nullopt;
    rpc::ListJobsReply reply;
    if (to == "d1:1") reply.status = Status(StatusCode::Unavailable, "starting");
    if (to == "d0:1") reply.jobs.resize(1);
    return reply;
  });
  SyncClient sync(*world.client);
  const auto all = sync.list_jobs();
  REQUIRE(!all);
  CHECK(all.error().code() == StatusCode::Unavailable);
  CHECK_THAT(all.error().message(), Catch::Contains("d1:1"));
  CHECK(sync.list_jobs("x").value().size() == 1);
}

TEST_CASE("deploying schemas waits until the client has them", "[sync_client]") {
  std::atomic<std::uint64_t> deployed{0};
  std::atomic<int> questions{0};
  ThreadWorld world([&](const rpc::Address&, rpc::Request& request) -> std::optional<rpc::Reply> {
    if (std::holds_alternative<rpc::DeploySchemas>(request)) {
      deployed = 2;
      return rpc::DeploySchemasReply{Status::ok(), 2, {"a warning"}};
    }
    if (!std::holds_alternative<rpc::GetClusterInfo>(request)) return std::nullopt;
    rpc::GetClusterInfoReply reply{Status::ok(), info_of_version(1)};
    if (deployed != 0 && ++questions > 2) {  // The distributor knows the new schemas from the third question on.
      reply.info.schema_version = 2;
      reply.info.schemas = {"document music {\n}\n"};
    }
    return reply;
  });
  SyncClient sync(*world.client);
  const auto reply = sync.deploy_schemas({"document music {\n}\n"});
  REQUIRE(reply);
  CHECK(reply->schema_version == 2);
  CHECK(reply->warnings == std::vector<std::string>{"a warning"});
  CHECK(world.client->snapshot()->types()->find("music") != nullptr);
}

}  // namespace fjord::test
