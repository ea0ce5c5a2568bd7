#include <fmt/format.h>

#include "balance_checker.h"
#include "balance_operator.h"
#include "chaos.h"
#include "fjord/sim/scenarios.h"
#include "operations_workload.h"
#include "recorder.h"
#include "scenario_end.h"

namespace fjord::sim {
namespace {

constexpr int kBytesPercent[] = {10, 30, 100};
constexpr const char* kReadsBy[] = {"balancer.reads=random", "balancer.reads=least-loaded", "balancer.reads=affinity"};
// Not `time`: an execution takes no simulated time.
constexpr const char* kLoads[] = {"balancer.load=work", "balancer.load=operations"};

struct Drawn {
  const char* reads;
  const char* load;
};

/// Changes the balancer's settings now and then.
class SettingsDrawer {
 public:
  SettingsDrawer(SimCluster& cluster, Operator& by, Random reads)
      : cluster_(cluster), operator_(by), reads_(std::move(reads)) {}
  void start() { schedule(); }
  void stop() { stopped_ = true; }

 private:
  void schedule() {
    const Duration pause(1'000'000 + cluster_.random().below(6'000'000));
    cluster_.scheduler().outside().post_after(pause, [this] {
      if (stopped_) return;
      static constexpr const char* kSettings[] = {"balancer.mode=on",
                                                  "balancer.mode=on",
                                                  "balancer.mode=advise",
                                                  "balancer.mode=off",
                                                  "balancer.algorithm=weighted-move",
                                                  "balancer.algorithm=two-tier",
                                                  "balancer.algorithm=descent",
                                                  "balancer.round=300ms",
                                                  "balancer.round=1500ms"};
      operator_.change_config(kSettings[cluster_.random().below(std::size(kSettings))], {});
      if (reads_.chance(0.5)) operator_.change_config(kReadsBy[reads_.below(std::size(kReadsBy))], {});
      schedule();
    });
  }

  SimCluster& cluster_;
  Operator& operator_;
  Random reads_;  ///< Draws of its own, so that it changes no other draw of a seed.
  bool stopped_ = false;
};

void turn_on(SimCluster& cluster, Operator& operator_, Random& random, const Drawn& drawn, int bytes_percent) {
  for (const std::string& setting :
       {std::string("balancer.mode=on"), std::string(drawn.load),
        fmt::format("balancer.round={}ms", 300 + random.below(1000)), std::string("balancer.operations_min=1"),
        fmt::format("balancer.bytes_part={:.2f}", bytes_percent / 100.0), std::string(drawn.reads)}) {
    operator_.change_config(setting, {});
  }
  cluster.run_until([&] { return operator_.is_idle(); }, seconds(60));
}

SimClusterOptions shape_of(const ScenarioOptions& options, Random& random) {
  SimClusterOptions shape = random_shape(options, random);
  shape.schemas = {kOperationsSchema};
  shape.storage_nodes = shape.redundancy + 1 + static_cast<unsigned>(random.below(4));
  shape.bits = 3 + static_cast<unsigned>(random.below(4));
  shape.controllers = random.chance(0.3) ? 3 : 1;
  return shape;
}

}  // namespace

ScenarioResult run_balance(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x62616c));
  const SimClusterOptions shape = shape_of(options, random);
  const int bytes_percent = kBytesPercent[random.below(std::size(kBytesPercent))];
  const bool is_calm = random.chance(0.4);
  Exposure exposure;
  Recorder recorder(exposure);
  SimCluster cluster(shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  cluster.network().set_observer(&recorder);
  recorder.causal_order().watch(cluster);
  cluster.start();
  recorder.balance().watch(cluster, bytes_percent / 100.0);

  Operator operator_(cluster);
  Random draws_of_reads(mix64(options.seed, 0x7265616473));
  const Drawn drawn = {kReadsBy[draws_of_reads.below(std::size(kReadsBy))],
                       kLoads[Random(mix64(options.seed, 0x6c6f6164)).below(std::size(kLoads))]};
  turn_on(cluster, operator_, random, drawn, bytes_percent);
  if (!is_calm) cluster.network().set_faults(random_faults(random));
  OperationsWorkload workload(cluster, 3, 8 + static_cast<unsigned>(random.below(60)));
  Chaos chaos(cluster);
  BalanceOperator balances(cluster);
  SettingsDrawer settings(cluster, operator_, draws_of_reads.fork());
  workload.start();
  if (!is_calm) chaos.start();
  if (random.chance(0.7)) balances.start();
  if (random.chance(0.5)) settings.start();
  cluster.scheduler().run_for(seconds(30));
  chaos.stop();
  balances.stop();
  settings.stop();
  workload.stop();
  bool all_ended = cluster.run_until([&] { return workload.idle(); }, seconds(60));

  cluster.network().set_faults({});
  cluster.restart_everything();
  operator_.change_config("balancer.mode=off", {});
  all_ended = cluster.run_until([&] { return operator_.is_idle() && balances.is_idle(); }, seconds(60)) && all_ended;
  recorder.balance().stop();
  const bool steady = cluster.run_until_steady(seconds(60));
  const bool readable = steady && workload.read_all();

  ScenarioResult result;
  const History& history = workload.history();
  result.failure = history.check();
  if (result.failure.empty()) result.failure = recorder.failure();
  if (result.failure.empty()) result.failure = recorder.balance().end();
  if (result.failure.empty()) result.failure = check_end(cluster, history, {all_ended, steady, readable});
  result.summary = fmt::format(
      "{} storage nodes, {} distributors, {} controllers, redundancy {}, {} bits, {} crashes, {} steps with {} moves, "
      "{} applied and {} reverted by hand, {} outdated, {} reports of loads, {} and {} at first, {} operations",
      shape.storage_nodes, shape.distributors, shape.controllers, shape.redundancy, shape.bits, chaos.crashes(),
      recorder.balance().steps(), recorder.balance().moves(), balances.applied(), balances.reverted(),
      balances.outdated(), recorder.balance().loads_seen(), drawn.reads, drawn.load, history.events().size());
  add_trace(cluster, result);
  return result;
}

}  // namespace fjord::sim
