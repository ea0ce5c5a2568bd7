#pragma once

// What the experiment tars-simulated compares: logs of one kind, and the ways to choose replicas for them.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/affinity/log_generator.h"
#include "fjord/affinity/simulator.h"
#include "fjord/affinity/training.h"

namespace fjord::affinity {

struct WorldOptions {
  Split split = Split::Resample;
  ListSizes sizes = ListSizes::GrowWithUse;
  Eviction eviction = Eviction::LeastFrequentlyUsed;

  std::string name() const;  // Returns the name, such as "A resample LFU".
};

/// The result of one way: missed pages over accessed pages, and pages of the busiest replica over the mean.
struct Outcome {
  double miss_rate = 0.0;
  double load = 1.0;
};

/// One row of [CALB 2019, table 3], with some figures that the table does not have.
struct Comparison {
  WorldOptions world;
  unsigned replicas = 0;
  std::map<std::string, Outcome> outcomes;  // By the name of the way to choose replicas (ways()).

  double miss_rate(const std::string& way) const { return outcomes.at(way).miss_rate; }
  /// Returns how far a way gets from the misses of fingerprints (0) to those of one cache as large as all together (1)
  /// [CALB 2019, 5.3].
  double gap_closed(const std::string& way) const;
};

/// Returns the names of the ways to choose replicas, in the order of the columns.
const std::vector<std::string>& ways();

/// Compares all ways: trains each on the train log and counts its misses on the test log.
Comparison compare(const LogSet& logs, const Corpus& corpus, const WorldOptions& world, unsigned replicas,
                   std::uint64_t cache_pages, std::uint64_t seed);

/// Returns the clustering of the train log by balanced partitioning. `load_tolerance` is that of PartitionOptions.
Clustering partition_of(const LogSet& logs, const Corpus& corpus, unsigned replicas, std::uint64_t seed,
                        double load_tolerance = 0.0);

Outcome run_table(const VotingTable& table, const QueryLog& log, const Corpus& corpus, const SimulationOptions& options,
                  bool with_multipliers = false);

/// Returns the table with a binary row for each word that it does not know: the hash of the word names the replica that
/// the word prefers.
VotingTable completed_by_hash(VotingTable table, const Corpus& corpus);

/// Returns Pearson's coefficient of correlation.
double correlation(const std::vector<std::pair<double, double>>& points);

}  // namespace fjord::affinity
