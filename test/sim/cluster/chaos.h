#pragma once

#include "fjord/sim/scenarios.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Kills and restarts processes: at most redundancy - 1 storage nodes are away at once, and the next one goes only when
/// the last one is back, which need not mean in sync.
class Chaos {
 public:
  explicit Chaos(SimCluster& cluster) : cluster_(cluster) {}
  void start() { schedule(); }
  void stop() { stopped_ = true; }
  unsigned crashes() const { return crashes_; }

 private:
  void schedule();
  void step();

  SimCluster& cluster_;
  bool stopped_ = false;
  unsigned crashes_ = 0;
};

/// Lost, doubled, delayed messages, each with some probability.
NetworkFaults random_faults(Random& random);

/// Sizes of a cluster; the schemas are left to the scenario.
SimClusterOptions random_shape(const ScenarioOptions& options, Random& random);

}  // namespace fjord::sim
