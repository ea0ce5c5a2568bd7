#include "fjord/sim/sim_transport.h"

#include <catch2/catch.hpp>

namespace fjord::sim {
namespace {

using rpc::CancelJob;
using rpc::CancelJobReply;
using rpc::Request;
using rpc::Responder;

class CountingService final : public rpc::Service {
 public:
  bool handle(Request& request, Responder& respond) override {
    if (!std::holds_alternative<CancelJob>(request)) return false;
    ++handled;
    if (keep) {
      kept.push_back(std::move(respond));
    } else {
      respond(CancelJobReply{});
    }
    return true;
  }
  int handled = 0;
  bool keep = false;
  std::vector<Responder> kept;
};

/// A client process and a server process.
struct World {
  explicit World(std::uint64_t seed) : scheduler(seed), network(scheduler, Random(seed)) {
    network.listen("server:1", {&service}, "server");
  }
  void call(Duration timeout = seconds(1)) {
    rpc::call(*transport, "server:1", CancelJob{"job"}, timeout, *executor, [this](Result<CancelJobReply> result) {
      codes.push_back(result ? StatusCode::Ok : result.error().code());
    });
  }
  /// Makes `calls` calls; returns the number by status code.
  std::map<StatusCode, int> count(int calls) {
    codes.clear();
    for (int i = 0; i < calls; ++i) call();
    scheduler.run_for(seconds(5));
    std::map<StatusCode, int> result;
    for (const StatusCode code : codes) ++result[code];
    CHECK(codes.size() == static_cast<std::size_t>(calls));
    return result;
  }

  CountingService service;
  SimScheduler scheduler;
  SimNetwork network;
  std::unique_ptr<SimNodeScheduler> process = scheduler.make_node_scheduler("client");
  std::unique_ptr<Executor> executor = process->make_executor("main");
  std::unique_ptr<rpc::Transport> transport = network.transport_for("client");
  std::vector<StatusCode> codes;
};

TEST_CASE("sim transport: without faults every call is answered", "[sim]") {
  World world(1);
  CHECK(world.count(100) == std::map<StatusCode, int>{{StatusCode::Ok, 100}});
  CHECK(world.service.handled == 100);
}

TEST_CASE("sim transport: a lost request or reply is a timeout", "[sim]") {
  World world(2);
  world.network.set_faults({.lose = 0.3});
  auto codes = world.count(1000);
  CHECK(codes[StatusCode::Ok] > 400);
  CHECK(codes[StatusCode::Ok] < 580);
  CHECK(codes[StatusCode::Timeout] == 1000 - codes[StatusCode::Ok]);
  // Some calls failed although their requests arrived: their replies were lost.
  CHECK(world.service.handled > codes[StatusCode::Ok]);
}

TEST_CASE("sim transport: a duplicated request is handled twice and answered once", "[sim]") {
  World world(3);
  world.network.set_faults({.duplicate = 1});
  CHECK(world.count(10) == std::map<StatusCode, int>{{StatusCode::Ok, 10}});
  CHECK(world.service.handled == 20);
}

TEST_CASE("sim transport: spikes delay messages beyond the deadline", "[sim]") {
  World world(4);
  world.network.set_faults({.delay_spike = 0.5, .delay_spike_max = seconds(3)});
  auto codes = world.count(200);
  CHECK(codes[StatusCode::Ok] > 20);
  CHECK(codes[StatusCode::Timeout] > 20);
}

TEST_CASE("sim transport: nothing passes a partition, and it heals", "[sim]") {
  World world(5);
  world.network.partition("client", "server");
  auto codes = world.count(100);
  CHECK(codes[StatusCode::NotReady] > 20);
  CHECK(codes[StatusCode::Timeout] > 20);
  CHECK(world.service.handled == 0);
  world.network.heal();
  CHECK(world.count(10) == std::map<StatusCode, int>{{StatusCode::Ok, 10}});
  world.network.isolate("server");
  CHECK(world.count(10)[StatusCode::Ok] == 0);
  world.network.heal();
  CHECK(world.count(10)[StatusCode::Ok] == 10);
}

TEST_CASE("sim transport: through a partition of the way back requests are done and time out", "[sim]") {
  World world(6);
  world.network.partition_one_way("server", "client");
  CHECK(world.count(50) == std::map<StatusCode, int>{{StatusCode::Timeout, 50}});
  CHECK(world.service.handled == 50);
}

TEST_CASE("sim transport: a partition swallows what is under way", "[sim]") {
  World world(7);
  world.network.set_faults({.delay_min = milliseconds(10), .delay_max = milliseconds(10)});
  world.call();
  world.scheduler.run_for(milliseconds(1));
  world.network.partition("client", "server");
  world.scheduler.run_for(seconds(2));
  CHECK(world.codes == std::vector<StatusCode>{StatusCode::Timeout});
  CHECK(world.service.handled == 0);
}

TEST_CASE("sim transport: what was under way to a process that ended does not reach the next one", "[sim]") {
  World world(8);
  for (int i = 0; i < 20; ++i) world.call();
  world.network.node_down("server");
  world.network.listen("server:1", {&world.service}, "server");
  world.scheduler.run_for(seconds(2));
  CHECK(world.codes == std::vector<StatusCode>(20, StatusCode::Timeout));
  CHECK(world.service.handled == 0);
  CHECK(world.count(10)[StatusCode::Ok] == 10);
}

TEST_CASE("sim transport: responders that die with their process do not answer", "[sim]") {
  World world(9);
  world.service.keep = true;
  for (int i = 0; i < 5; ++i) world.call();
  world.scheduler.run_for(milliseconds(100));
  REQUIRE(world.service.kept.size() == 5);
  world.network.node_down("server");
  world.service.kept.clear();
  world.scheduler.run_for(seconds(2));
  CHECK(world.codes == std::vector<StatusCode>(5, StatusCode::Timeout));
}

TEST_CASE("sim transport: a process that ended gets no answers", "[sim]") {
  World world(10);
  world.call();
  world.network.node_down("client");
  world.scheduler.run_for(seconds(2));
  CHECK(world.codes.empty());
  world.call();
  world.transport.reset();
  world.scheduler.run_for(seconds(2));
  CHECK(world.codes.empty());
}

TEST_CASE("sim transport: the seed decides everything and messages are in the trace", "[sim]") {
  const auto trace_of = [](std::uint64_t seed, const std::string& job) {
    World world(seed);
    world.network.set_faults({.lose = 0.1, .duplicate = 0.1, .delay_spike = 0.1});
    for (int i = 0; i < 50; ++i) {
      rpc::call(*world.transport, "server:1", CancelJob{job}, seconds(1), *world.executor,
                [](Result<CancelJobReply>) {});
    }
    world.scheduler.run_for(seconds(3));
    return world.scheduler.trace_hash();
  };
  CHECK(trace_of(11, "job") == trace_of(11, "job"));
  CHECK(trace_of(11, "job") != trace_of(12, "job"));
  CHECK(trace_of(11, "job") != trace_of(11, "job2"));
}

}  // namespace
}  // namespace fjord::sim
