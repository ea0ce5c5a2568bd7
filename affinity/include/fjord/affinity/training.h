#pragma once

#include <functional>

#include "fjord/affinity/clustering.h"
#include "fjord/affinity/simulator.h"

namespace fjord::affinity {

/// The best of several random clusterings, by the misses of their tables on the log; `random` draws them.
Clustering best_random_clustering(const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                                  unsigned draws, Random& random);

struct RefinementOptions {
  unsigned rounds = 20;
  double step = 0.5;  ///< Tau: how far weights go to what was counted in a round.
};

/// Called with the table before each round, and with the last one: round 0, 1, ..., `rounds`. `train_miss_rate` is that
/// of the replay of the round; for the last table it is that of the round before.
using RefinementObserver = std::function<void(unsigned round, const VotingTable& table, double train_miss_rate)>;

/// Replays the log with the table round after round, counts how often the list of each word is in each cache, and moves
/// the weights towards the pages missed so [CALB 2019, 4]. The words of the table stay the same.
VotingTable refine(VotingTable table, const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                   const RefinementOptions& refinement, const RefinementObserver& observer = {});

}  // namespace fjord::affinity
