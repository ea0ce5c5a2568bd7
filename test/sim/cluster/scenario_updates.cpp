#include <fmt/format.h>

#include "chaos.h"
#include "fjord/sim/scenarios.h"
#include "scenario_end.h"
#include "updates_workload.h"

namespace fjord::sim {

ScenarioResult run_updates(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x757064));
  SimClusterOptions shape = random_shape(options, random);
  shape.schemas = {kUpdatesSchema};
  SimCluster cluster(shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  cluster.start();

  cluster.network().set_faults(random_faults(random));
  std::vector<AsyncClient*> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(&cluster.add_client());
  UpdatesWorkload workload(cluster, clients, 3 + static_cast<unsigned>(random.below(13)));
  Chaos chaos(cluster);
  workload.start();
  chaos.start();
  cluster.scheduler().run_for(seconds(20));
  chaos.stop();
  workload.stop();
  cluster.scheduler().run_for(seconds(2));
  cluster.network().set_faults({});
  cluster.restart_everything();
  const bool steady = cluster.run_until_steady(seconds(60));
  const bool all_settled = cluster.run_until([&] { return workload.idle(); }, seconds(120));

  ScenarioResult result;
  result.failure = workload.failure();
  if (result.failure.empty() && !steady) result.failure = "I3: replicas did not converge: " + cluster.check_replicas();
  if (result.failure.empty() && !all_settled) result.failure = "I16: an operation was never settled";
  if (result.failure.empty()) result.failure = workload.check_all();
  result.summary = fmt::format(
      "{} storage nodes, {} distributors, redundancy {}, {} crashes, {} messages ({} lost), {} operations ({} applied, "
      "{} not), {} settled by repetition",
      shape.storage_nodes, shape.distributors, shape.redundancy, chaos.crashes(), cluster.network().messages_sent(),
      cluster.network().messages_lost(), workload.begun(), workload.applied(), workload.refused(), workload.settled());
  add_trace(cluster, result);
  return result;
}

}  // namespace fjord::sim
