#include <fmt/format.h>

#include "chaos.h"
#include "claim_checker.h"
#include "fjord/sim/scenarios.h"
#include "operations_workload.h"
#include "scenario_end.h"

namespace fjord::sim {

ScenarioResult run_operations(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x6f7073));
  SimClusterOptions shape = random_shape(options, random);
  shape.schemas = {kOperationsSchema};
  ClaimChecker claims(options.seed, options.claims);
  SimCluster cluster(shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  claims.observe(cluster);
  cluster.start();

  cluster.network().set_faults(random_faults(random));
  OperationsWorkload workload(cluster, 3, 8 + static_cast<unsigned>(random.below(40)));
  Chaos chaos(cluster);
  workload.start();
  chaos.start();
  claims.watch(seconds(20));
  cluster.scheduler().run_for(seconds(20));
  chaos.stop();
  workload.stop();
  bool all_ended = cluster.run_until([&] { return workload.idle(); }, seconds(60));

  cluster.network().set_faults({});
  cluster.restart_everything();
  bool steady = cluster.run_until_steady(seconds(60));
  bool readable = steady && workload.read_all();
  if (readable) claims.at_end();

  ScenarioResult result;
  const History& history = workload.history();
  result.failure = history.check();
  if (result.failure.empty()) result.failure = check_end(cluster, history, {all_ended, steady, readable});
  if (result.failure.empty()) result.failure = claims.failure();
  result.summary = fmt::format(
      "{} storage nodes, {} distributors, redundancy {}, {} crashes, {} messages ({} lost), {} operations ({} in "
      "doubt, "
      "{} not applied)",
      shape.storage_nodes, shape.distributors, shape.redundancy, chaos.crashes(), cluster.network().messages_sent(),
      cluster.network().messages_lost(), history.events().size(), history.count(Outcome::InDoubt),
      history.count(Outcome::NotApplied));
  result.summary += "; " + claims.summary();
  add_trace(cluster, result, claims.trace());
  return result;
}

}  // namespace fjord::sim
