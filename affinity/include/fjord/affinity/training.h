#pragma once

#include <functional>

#include "fjord/affinity/clustering.h"
#include "fjord/affinity/simulator.h"

namespace fjord::affinity {

/// Returns the best of several random clusterings: the one whose table misses fewest pages on the log. `random` draws
/// them.
Clustering best_random_clustering(const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                                  unsigned draws, Random& random);

struct RefinementOptions {
  unsigned rounds = 20;
  double step = 0.5;  ///< Tau: the weights move by this part of the distance to the misses counted in a round.
};

/// Called with the table before each round and after the last one, with `round` from 0 to `rounds`. `train_miss_rate`
/// is the miss rate of the round's replay; for the last table, that of the last replay.
using RefinementObserver = std::function<void(unsigned round, const VotingTable& table, double train_miss_rate)>;

/// Replays the log with the table in several rounds. Each round counts how often each cache has the list of each word,
/// and moves the weights towards the pages that were missed [CALB 2019, 4]. The table keeps its words.
VotingTable refine(VotingTable table, const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                   const RefinementOptions& refinement, const RefinementObserver& observer = {});

}  // namespace fjord::affinity
