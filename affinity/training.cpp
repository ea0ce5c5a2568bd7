#include "fjord/affinity/training.h"

#include <algorithm>
#include <limits>

namespace fjord::affinity {
namespace {

/// Moves the weights of the table by `step` towards the misses that were counted.
void take_step(VotingTable& table, const HitCounts& counts, const ListPages& pages, double step) {
  std::vector<float> weights(table.replicas());
  for (WordId word = 0; word < pages.size(); ++word) {
    if (!table.knows(word) || counts.occurrences[word] == 0) continue;
    const std::span<const float> now = table.weights(word);
    for (std::size_t r = 0; r < weights.size(); ++r) {
      const double hit_part =
          static_cast<double>(counts.hits[word * weights.size() + r]) / static_cast<double>(counts.occurrences[word]);
      const double counted = (1.0 - hit_part) * pages[word];
      weights[r] = static_cast<float>((1.0 - step) * static_cast<double>(now[r]) + step * counted);
    }
    table.set(word, weights);
  }
}

}  // namespace

Clustering best_random_clustering(const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                                  unsigned draws, Random& random) {
  Clustering best;
  double least = std::numeric_limits<double>::infinity();
  for (unsigned draw = 0; draw < draws; ++draw) {
    Clustering clustering = random_clustering(log, pages, options.replicas, random);
    const VotingTable table = binary_table(clustering, pages, options.replicas);
    VotingChooser chooser(table, pages);
    const double missed = simulate(log, pages, options, chooser).miss_rate();
    if (missed >= least) continue;
    least = missed;
    best = std::move(clustering);
  }
  return best;
}

VotingTable refine(VotingTable table, const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                   const RefinementOptions& refinement, const RefinementObserver& observer) {
  double missed = 0.0;
  for (unsigned round = 0; round < refinement.rounds; ++round) {
    HitCounts counts;
    VotingChooser chooser(table, pages);
    missed = simulate(log, pages, options, chooser, &counts).miss_rate();
    if (observer) observer(round, table, missed);
    take_step(table, counts, pages, refinement.step);
  }
  if (observer) observer(refinement.rounds, table, missed);
  return table;
}

}  // namespace fjord::affinity
