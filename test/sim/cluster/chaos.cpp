#include "chaos.h"

#include <numeric>

namespace fjord::sim {

Chaos::Chaos(SimCluster& cluster, std::vector<unsigned> mortal) : cluster_(cluster), mortal_(std::move(mortal)) {
  if (!mortal_.empty()) return;
  mortal_.resize(cluster.options().storage_nodes);
  std::iota(mortal_.begin(), mortal_.end(), 0U);
}

void Chaos::schedule() {
  cluster_.scheduler().outside().post_after(Duration(200'000 + cluster_.random().below(4'000'000)), [this] {
    if (stopped_) return;
    step();
    schedule();
  });
}

void Chaos::step() {
  Random& random = cluster_.random();
  std::uint64_t dice = random.below(10);
  if (dice < 7) {
    std::vector<unsigned> away;
    for (unsigned i = 0; i < cluster_.options().storage_nodes; ++i) {
      if (!cluster_.storage_alive(i)) away.push_back(i);
    }
    if (away.size() + 1 >= cluster_.options().redundancy && !away.empty()) {
      cluster_.restart_storage(away[random.below(away.size())]);
    } else {
      ++crashes_;
      cluster_.crash_storage(mortal_[random.below(mortal_.size())]);
    }
  } else if (dice < 9) {
    unsigned index = static_cast<unsigned>(random.below(cluster_.options().distributors));
    if (cluster_.distributor_alive(index)) {
      ++crashes_;
      cluster_.crash_distributor(index);
    } else {
      cluster_.restart_distributor(index);
    }
  } else {
    ++crashes_;
    cluster_.crash_controller();
    cluster_.restart_controller();
  }
}

NetworkFaults random_faults(Random& random) {
  NetworkFaults faults;
  if (random.chance(0.7)) faults.lose = random.uniform() * 0.05;
  if (random.chance(0.7)) faults.duplicate = random.uniform() * 0.1;
  if (random.chance(0.5)) faults.delay_max = Duration(500 + random.below(20'000));
  if (random.chance(0.5)) faults.delay_spike = random.uniform() * 0.02;
  faults.delay_spike_max = milliseconds(100 + static_cast<std::int64_t>(random.below(3000)));
  return faults;
}

namespace {

/// Time in which a scrub has begun after now and has ended.
constexpr Duration kScrubbedWithin = SimCluster::kScrubInterval + seconds(10);

/// Reads everything, which finds damage in slotfiles, until all of it is repaired. Returns an empty string then.
std::string wait_until_readable(SimCluster& cluster) {
  std::string problem;
  for (int turn = 0; turn < 20; ++turn) {
    if (!cluster.run_until_steady(seconds(60))) return "I3: replicas did not converge: " + cluster.check_replicas();
    problem = cluster.check_documents();
    if (problem.empty()) return {};
  }
  return "I13: still damaged: " + problem;
}

}  // namespace

std::string wait_until_whole(SimCluster& cluster) {
  if (std::string problem = wait_until_readable(cluster); !problem.empty()) return problem;
  // A damaged journal is not read while its process lives. The next scrub replaces it.
  cluster.scheduler().run_for(kScrubbedWithin);
  return wait_until_readable(cluster);
}

SimClusterOptions random_shape(const ScenarioOptions& options, Random& random) {
  SimClusterOptions shape;
  shape.seed = options.seed;
  shape.redundancy = 2 + static_cast<unsigned>(random.below(2));
  shape.storage_nodes = shape.redundancy + static_cast<unsigned>(random.below(3));
  shape.distributors = 1 + static_cast<unsigned>(random.below(3));
  shape.bits = 1 + static_cast<unsigned>(random.below(4));
  shape.stripes = 1U << random.below(2);
  if (shape.stripes > (1U << shape.bits)) shape.stripes = 1;
  shape.bug = options.bug;
  shape.clock_skew = options.clock_skew;
  return shape;
}

}  // namespace fjord::sim
