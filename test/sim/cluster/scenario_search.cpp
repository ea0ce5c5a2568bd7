#include <fmt/format.h>

#include "affinity_faults.h"
#include "balance_operator.h"
#include "chaos.h"
#include "fjord/sim/scenarios.h"
#include "operator.h"
#include "search_checker.h"
#include "workload_search.h"

namespace fjord::sim {
namespace {

SimClusterOptions shape_of(const ScenarioOptions& options, Random& random) {
  SimClusterOptions shape = random_shape(options, random);
  shape.schemas = {kSearchSchema};
  shape.search = true;
  shape.storage_nodes = shape.redundancy + 1 + static_cast<unsigned>(random.below(3));
  shape.bits = 2 + static_cast<unsigned>(random.below(4));
  return shape;
}

/// Moves buckets by load, so that slices change their nodes while they are searched.
void turn_on_balancer(SimCluster& cluster, Operator& operator_) {
  for (const char* setting : {"balancer.mode=on", "balancer.load=work", "balancer.round=500ms",
                              "balancer.operations_min=1", "balancer.bytes_part=0.3"}) {
    operator_.change_config(setting, {});
  }
  cluster.run_until([&] { return operator_.is_idle(); }, seconds(60));
}

}  // namespace

ScenarioResult run_search(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x736561));
  const SimClusterOptions shape = shape_of(options, random);
  const bool is_calm = random.chance(0.3);
  SearchChecker checker;
  SimCluster cluster(shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  checker.watch(cluster);
  cluster.network().set_observer(&checker);
  cluster.start();

  Operator operator_(cluster);
  if (random.chance(0.5)) turn_on_balancer(cluster, operator_);
  if (!is_calm) cluster.network().set_faults(random_faults(random));
  SearchWorkload workload(cluster, 4 + static_cast<unsigned>(random.below(8)));
  Chaos chaos(cluster);
  BalanceOperator balances(cluster);
  AffinityOperator affinities(cluster);
  workload.start();
  if (!is_calm) chaos.start();
  if (random.chance(0.7)) balances.start();
  if (random.chance(0.8)) affinities.start();
  cluster.scheduler().run_for(seconds(20));
  chaos.stop();
  balances.stop();
  affinities.stop();
  workload.stop();
  bool all_ended = cluster.run_until([&] { return workload.is_idle(); }, seconds(60));

  cluster.network().set_faults({});
  cluster.restart_everything();
  operator_.change_config("balancer.mode=off", {});
  all_ended = cluster.run_until([&] { return operator_.is_idle() && balances.is_idle() && affinities.is_idle(); },
                                seconds(60)) &&
              all_ended;
  const bool steady = cluster.run_until_steady(seconds(60));
  const std::string at_rest = steady ? workload.check_at_rest() : std::string();

  ScenarioResult result;
  result.failure = workload.failure();
  if (result.failure.empty()) result.failure = checker.failure();
  if (result.failure.empty() && !all_ended) result.failure = "I16: an operation or a search never ended";
  if (result.failure.empty() && !steady) result.failure = "I3: replicas did not converge: " + cluster.check_replicas();
  if (result.failure.empty()) result.failure = at_rest;
  result.trace_hash = cluster.scheduler().trace_hash();
  result.events = cluster.scheduler().events_run();
  result.summary = fmt::format(
      "{} storage nodes, {} distributors, redundancy {}, {} bits, {} crashes, {} steps applied by hand, {} complete "
      "searches with {} places, {} partial, {} failed, {} compared, {} with too many states, {} answers of nodes, {} "
      "other ways to choose replicas",
      shape.storage_nodes, shape.distributors, shape.redundancy, shape.bits, chaos.crashes(), balances.applied(),
      workload.complete(), workload.hits(), workload.partial(), workload.failed(), workload.model().checked(),
      workload.model().undecided(), checker.answers(), affinities.changes());
  result.trace.assign(cluster.scheduler().kept_trace().begin(), cluster.scheduler().kept_trace().end());
  return result;
}

}  // namespace fjord::sim
