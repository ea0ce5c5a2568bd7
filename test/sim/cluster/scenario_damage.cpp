#include <fmt/format.h>

#include "chaos.h"
#include "claim_checker.h"
#include "fjord/sim/scenarios.h"
#include "operations_workload.h"
#include "scenario_end.h"

namespace fjord::sim {
namespace {

/// Flips bits in the files of one storage node and truncates files, sometimes several at once.
class Decay {
 public:
  Decay(SimCluster& cluster, unsigned victim) : cluster_(cluster), victim_(victim) {}
  void start() { schedule(); }
  void stop() { stopped_ = true; }
  unsigned damages() const { return damages_; }

 private:
  void schedule() {
    const Duration pause(100'000 + cluster_.random().below(3'000'000));
    cluster_.scheduler().outside().post_after(pause, [this] {
      if (stopped_) return;
      const std::uint64_t times = 1 + cluster_.random().below(4);
      for (std::uint64_t i = 0; i < times; ++i) damages_ += cluster_.damage_storage(victim_) ? 1 : 0;
      schedule();
    });
  }

  SimCluster& cluster_;
  unsigned victim_;
  unsigned damages_ = 0;
  bool stopped_ = false;
};

}  // namespace

ScenarioResult run_damage(const ScenarioOptions& options) {
  Random random(mix64(options.seed, 0x646d67));
  SimClusterOptions shape = random_shape(options, random);
  shape.schemas = {kOperationsSchema};
  ClaimChecker claims(options.seed, options.claims);
  SimCluster cluster(shape);
  cluster.scheduler().keep_trace(options.keep_trace);
  claims.observe(cluster);
  cluster.start();

  // Each bucket has an intact replica at any time: with three replicas one more node may be down, but not a third.
  const auto victim = static_cast<unsigned>(random.below(shape.storage_nodes));
  std::vector<unsigned> mortal{victim};
  if (shape.redundancy > 2) mortal.push_back((victim + 1) % shape.storage_nodes);
  cluster.network().set_faults(random_faults(random));
  OperationsWorkload workload(cluster, 3, 8 + static_cast<unsigned>(random.below(40)));
  Chaos chaos(cluster, mortal);
  Decay decay(cluster, victim);
  workload.start();
  chaos.start();
  decay.start();
  cluster.scheduler().run_for(seconds(20));
  chaos.stop();
  decay.stop();
  workload.stop();
  bool all_ended = cluster.run_until([&] { return workload.idle(); }, seconds(60));

  cluster.network().set_faults({});
  cluster.restart_everything();
  ScenarioResult result;
  const std::string damage = wait_until_whole(cluster);
  const bool readable = damage.empty() && workload.read_all();
  if (readable) claims.at_end();
  const History& history = workload.history();
  result.failure = history.check();
  if (result.failure.empty() && !all_ended) result.failure = "I16: an operation never ended";
  if (result.failure.empty()) result.failure = damage;
  if (result.failure.empty() && !readable)
    result.failure = "I16: a document could not be read when all faults were over: " + last_unread(history);
  if (result.failure.empty()) result.failure = claims.failure();
  result.summary = fmt::format(
      "{} storage nodes, {} distributors, redundancy {}, {} crashes, {} times damaged, {} buckets repaired, {} "
      "operations ({} in doubt, {} not applied)",
      shape.storage_nodes, shape.distributors, shape.redundancy, chaos.crashes(), decay.damages(),
      cluster.repaired_buckets(), history.events().size(), history.count(Outcome::InDoubt),
      history.count(Outcome::NotApplied));
  result.summary += "; " + claims.summary();
  add_trace(cluster, result, claims.trace());
  return result;
}

}  // namespace fjord::sim
