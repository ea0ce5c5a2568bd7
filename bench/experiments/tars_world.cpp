#include "tars_world.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "fjord/common/check.h"

namespace fjord::affinity {
namespace {

Outcome outcome_of(const SimulationResult& result) { return {result.miss_rate(), result.load_imbalance()}; }

Outcome run_fingerprints(const QueryLog& log, const Corpus& corpus, const SimulationOptions& options) {
  FingerprintChooser chooser(options.replicas);
  return outcome_of(simulate(log, corpus.pages, options, chooser));
}

Outcome run_shadow(const VotingTable& table, const QueryLog& log, const Corpus& corpus,
                   const SimulationOptions& options, ShadowChooser::Options shadow) {
  ShadowChooser chooser(table, corpus.pages, corpus.hashes, shadow);
  return outcome_of(simulate(log, corpus.pages, options, chooser));
}

}  // namespace

std::string WorldOptions::name() const {
  return fmt::format("{} {} {}", sizes == ListSizes::GrowWithUse ? "A" : "B",
                     split == Split::Resample ? "resample" : "disjoint",
                     eviction == Eviction::LeastFrequentlyUsed ? "LFU" : "LRU");
}

double Comparison::gap_closed(const std::string& way) const {
  return (miss_rate("FPT") - miss_rate(way)) / (miss_rate("FPT") - miss_rate("Unif"));
}

const std::vector<std::string>& ways() {
  static const std::vector<std::string> names{"FPT",   "RND",     "BP",       "RND+IR",
                                              "BP+IR", "BP+IR+m", "BPL+IR",   "BPL+IR+m",
                                              "Unif",  "shadow",  "shadow+m", "shadow+m, 8 brokers"};
  return names;
}

Clustering partition_of(const LogSet& logs, const Corpus& corpus, unsigned replicas, std::uint64_t seed,
                        double load_tolerance) {
  PartitionOptions options;
  options.replicas = replicas;
  options.seed = seed;
  options.load_tolerance = load_tolerance;
  Result<Clustering> clustering = partition(logs.train, corpus.pages, options);
  if (!clustering) fmt::print(stderr, "{}\n", clustering.error().to_string());
  FJORD_CHECK(clustering.has_value());
  return *std::move(clustering);
}

Outcome run_table(const VotingTable& table, const QueryLog& log, const Corpus& corpus, const SimulationOptions& options,
                  bool with_multipliers) {
  VotingChooser chooser(table, corpus.pages, with_multipliers);
  return outcome_of(simulate(log, corpus.pages, options, chooser));
}

Comparison compare(const LogSet& logs, const Corpus& corpus, const WorldOptions& world, unsigned replicas,
                   std::uint64_t cache_pages, std::uint64_t seed) {
  const SimulationOptions options{.replicas = replicas, .cache_pages = cache_pages, .eviction = world.eviction};
  const SimulationOptions unified{.replicas = 1, .cache_pages = cache_pages * replicas, .eviction = world.eviction};
  Comparison row{world, replicas, {}};
  Random random(seed);
  const Clustering by_chance = best_random_clustering(logs.train, corpus.pages, options, 10, random);
  const Clustering by_cut = partition_of(logs, corpus, replicas, seed);
  const VotingTable rnd = binary_table(by_chance, corpus.pages, replicas);
  const VotingTable bp = binary_table(by_cut, corpus.pages, replicas);
  const VotingTable rnd_refined = refine(rnd, logs.train, corpus.pages, options, {});
  const VotingTable bp_refined = refine(bp, logs.train, corpus.pages, options, {});
  row.outcomes["FPT"] = run_fingerprints(logs.test, corpus, options);
  row.outcomes["RND"] = run_table(rnd, logs.test, corpus, options);
  row.outcomes["BP"] = run_table(bp, logs.test, corpus, options);
  row.outcomes["RND+IR"] = run_table(rnd_refined, logs.test, corpus, options);
  row.outcomes["BP+IR"] = run_table(bp_refined, logs.test, corpus, options);
  row.outcomes["BP+IR+m"] = run_table(bp_refined, logs.test, corpus, options, true);
  const VotingTable even = refine(binary_table(partition_of(logs, corpus, replicas, seed, 0.1), corpus.pages, replicas),
                                  logs.train, corpus.pages, options, {});
  row.outcomes["BPL+IR"] = run_table(even, logs.test, corpus, options);
  row.outcomes["BPL+IR+m"] = run_table(even, logs.test, corpus, options, true);
  row.outcomes["Unif"] = run_fingerprints(logs.test, corpus, unified);
  row.outcomes["shadow"] = run_shadow(bp_refined, logs.test, corpus, options, {});
  row.outcomes["shadow+m"] =
      run_shadow(bp_refined, logs.test, corpus, options, {.with_multipliers = true, .brokers = 1});
  row.outcomes["shadow+m, 8 brokers"] =
      run_shadow(bp_refined, logs.test, corpus, options, {.with_multipliers = true, .brokers = 8});
  return row;
}

VotingTable completed_by_hash(VotingTable table, const Corpus& corpus) {
  std::vector<float> weights(table.replicas());
  for (WordId word = 0; word < corpus.pages.size(); ++word) {
    if (table.knows(word)) continue;
    std::fill(weights.begin(), weights.end(), static_cast<float>(corpus.pages[word]));
    weights[corpus.hashes[word] % table.replicas()] = 0.0F;
    table.set(word, weights);
  }
  return table;
}

double correlation(const std::vector<std::pair<double, double>>& points) {
  double x = 0.0;
  double y = 0.0;
  for (const auto& [a, b] : points) {
    x += a / static_cast<double>(points.size());
    y += b / static_cast<double>(points.size());
  }
  double xx = 0.0;
  double yy = 0.0;
  double xy = 0.0;
  for (const auto& [a, b] : points) {
    xx += (a - x) * (a - x);
    yy += (b - y) * (b - y);
    xy += (a - x) * (b - y);
  }
  return xy / std::sqrt(xx * yy);
}

}  // namespace fjord::affinity
