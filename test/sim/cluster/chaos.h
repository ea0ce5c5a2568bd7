#pragma once

#include <string>
#include <vector>

#include "fjord/sim/scenarios.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Kills and restarts processes. At most redundancy - 1 storage nodes are down at once; the next one is killed only
/// when the last one is up again, though its replicas need not be in sync. `mortal` lists the storage nodes that may be
/// killed; empty: all.
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

/// Draws the probabilities of lost, duplicated and delayed messages.
NetworkFaults random_faults(Random& random);

/// Waits until nothing is damaged on any disk: until everything can be read, and then for a scrub, which also replaces
/// the journals. Returns an empty string on success.
std::string wait_until_whole(SimCluster& cluster);

/// Draws the sizes of a cluster; the scenario adds the schemas.
SimClusterOptions random_shape(const ScenarioOptions& options, Random& random);

}  // namespace fjord::sim
