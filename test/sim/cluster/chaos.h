#pragma once

#include <vector>

#include "fjord/sim/scenarios.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Kills and restarts processes: at most redundancy - 1 storage nodes are away at once, and the next one goes only when
/// the last one is back, which need not mean in sync. `mortal` are the storage nodes that may be killed, all by
/// default.
class Chaos {
 public:
  explicit Chaos(SimCluster& cluster, std::vector<unsigned> mortal = {});
  void start() { schedule(); }
  void stop() { stopped_ = true; }
  unsigned crashes() const { return crashes_; }

 private:
  void schedule();
  void step();

  SimCluster& cluster_;
  std::vector<unsigned> mortal_;
  bool stopped_ = false;
  unsigned crashes_ = 0;
};

/// Lost, doubled, delayed messages, each with some probability.
NetworkFaults random_faults(Random& random);

/// Sizes of a cluster; the schemas are left to the scenario.
SimClusterOptions random_shape(const ScenarioOptions& options, Random& random);

}  // namespace fjord::sim
