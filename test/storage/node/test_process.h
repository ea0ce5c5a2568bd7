#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fjord/common/log.h"
#include "fjord/common/runtime.h"
#include "fjord/rpc/transport.h"
#include "fjord/sim/sim_clock.h"
#include "fjord/sim/sim_env.h"
#include "fjord/sim/sim_scheduler.h"
#include "fjord/sim/sim_transport.h"

namespace fjord::test {

/// Scheduler and network for a few nodes.
struct TestNetwork {
  explicit TestNetwork(std::uint64_t seed = 1) : scheduler(seed), network(scheduler, Random(seed)) {
    log::set_level(log::Level::Off);
  }
  sim::SimScheduler scheduler;
  sim::SimNetwork network;
};

/// One incarnation of a simulated process that runs `Node`, at the address "<name>:1". Its destructor kills the process
/// as SIGKILL does. Lifetime: `world` and `env` outlive it; `env` stays over restarts.
template <typename Node>
class TestProcess {
 public:
  TestProcess(TestNetwork& world, std::string name, Env& env, std::uint64_t incarnation)
      : world_(world),
        name_(std::move(name)),
        scheduler_(world.scheduler.make_node_scheduler(name_)),
        clock_(world.scheduler.clock()),
        random_(incarnation),
        bulk_(make_inline_bulk_executor()),
        transport_(world.network.transport_for(name_)),
        runtime_{clock_, *scheduler_, *bulk_, env, random_, metrics_, tunables_} {}
  ~TestProcess() {
    world_.network.node_down(name_);
    scheduler_->kill();
    node_.reset();
  }

  void run(std::unique_ptr<Node> node) {
    node_ = std::move(node);
    world_.network.listen(name_ + ":1", {node_.get()}, name_);
  }
  Runtime& runtime() { return runtime_; }
  rpc::Transport& transport() { return *transport_; }
  Node& node() { return *node_; }
  sim::SimNodeScheduler& scheduler() { return *scheduler_; }

 private:
  TestNetwork& world_;
  std::string name_;
  std::unique_ptr<sim::SimNodeScheduler> scheduler_;
  sim::SimNodeClock clock_;
  Random random_;
  std::unique_ptr<BulkExecutor> bulk_;
  MetricRegistry metrics_;
  TunableRegistry tunables_;
  std::unique_ptr<rpc::Transport> transport_;
  Runtime runtime_;
  std::unique_ptr<Node> node_;
};

/// A process that calls nodes and waits for the answers.
class TestCaller {
 public:
  explicit TestCaller(TestNetwork& world)
      : world_(world),
        process_(world.scheduler.make_node_scheduler("caller")),
        executor_(process_->make_executor("caller")),
        transport_(world.network.transport_for("caller")) {}

  /// Returns the reply, or the error of the call itself.
  template <typename R>
  Result<typename R::Reply> try_ask(const rpc::Address& to, R request, Duration timeout = seconds(5)) {
    std::optional<Result<typename R::Reply>> got;
    rpc::call(*transport_, to, std::move(request), timeout, *executor_,
              [&](Result<typename R::Reply> reply) { got = std::move(reply); });
    REQUIRE(world_.scheduler.run_until([&] { return got.has_value(); }, timeout + seconds(1)));
    return std::move(*got);
  }
  template <typename R>
  typename R::Reply ask(const rpc::Address& to, R request, Duration timeout = seconds(5)) {
    Result<typename R::Reply> reply = try_ask(to, std::move(request), timeout);
    INFO(reply.status());
    REQUIRE(reply);
    return std::move(*reply);
  }

 private:
  TestNetwork& world_;
  std::unique_ptr<sim::SimNodeScheduler> process_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<rpc::Transport> transport_;
};

}  // namespace fjord::test
