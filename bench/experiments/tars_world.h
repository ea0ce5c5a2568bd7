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

  std::string name() const;  // "A resample LFU"
};

/// Missed pages over accessed pages, and pages of the busiest replica over the mean.
struct Outcome {
  double miss_rate = 0.0;
  double load = 1.0;
};

/// One row of [CALB 2019, table 3], with what goes beyond it.
struct Comparison {
  WorldOptions world;
  unsigned replicas = 0;
  std::map<std::string, Outcome> outcomes;  // By the name of the way.

  double miss_rate(const std::string& way) const { return outcomes.at(way).miss_rate; }
  /// Part of the way from fingerprints to one cache of the size of all [CALB 2019, 5.3].
  double gap_closed(const std::string& way) const;
};

/// Ways in the order of the columns.
const std::vector<std::string>& ways();

/// Trains on the train log, counts on the test log.
Comparison compare(const LogSet& logs, const Corpus& corpus, const WorldOptions& world, unsigned replicas,
                   std::uint64_t cache_pages, std::uint64_t seed);

/// The clustering of the train log by balanced partitioning. `load_tolerance` as in PartitionOptions.
Clustering partition_of(const LogSet& logs, const Corpus& corpus, unsigned replicas, std::uint64_t seed,
                        double load_tolerance = 0.0);

Outcome run_table(const VotingTable& table, const QueryLog& log, const Corpus& corpus, const SimulationOptions& options,
                  bool with_multipliers = false);

/// Pearson's coefficient.
double correlation(const std::vector<std::pair<double, double>>& points);

}  // namespace fjord::affinity
