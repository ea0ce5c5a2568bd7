#pragma once

#include <string>
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

/// Waits until nothing is damaged any more. Empty if that came about. Damage that nobody has met yet is met by looking
/// for it, so it may take some turns.
std::string wait_until_whole(SimCluster& cluster);

/// Sizes of a cluster; the schemas are left to the scenario.
SimClusterOptions random_shape(const ScenarioOptions& options, Random& random);

}  // namespace fjord::sim
