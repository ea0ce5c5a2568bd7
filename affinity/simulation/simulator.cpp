#include "fjord/affinity/simulator.h"

#include <algorithm>
#include <numeric>

#include "fjord/common/check.h"

namespace fjord::affinity {
namespace {

constexpr std::size_t kChangesKept = 4096;  // Number of changes kept for each cache, from which brokers catch up.

class Simulation {
 public:
  Simulation(const ListPages& pages, const SimulationOptions& options, ReplicaChooser& chooser)
      : pages_(pages),
        chooser_(chooser),
        caches_(options.replicas, CacheModel(options.cache_pages, options.eviction)),
        changes_(options.replicas, CacheChanges(kChangesKept)) {
    result_.replicas.resize(options.replicas);
  }

  SimulationResult run(const QueryLog& log, HitCounts* counts) {
    pass(log, nullptr);
    for (ReplicaFigures& figures : result_.replicas) figures = {};
    if (counts != nullptr) {
      counts->occurrences.assign(pages_.size(), 0);
      counts->hits.assign(pages_.size() * caches_.size(), 0);
    }
    pass(log, counts);
    return std::move(result_);
  }

 private:
  void pass(const QueryLog& log, HitCounts* counts) {
    for (std::size_t query = 0; query < log.size(); ++query) {
      const unsigned replica = chooser_.choose(log.words(query), log.fingerprint(query));
      FJORD_CHECK(replica < caches_.size());
      answer(log.words(query), replica, counts);
    }
  }

  void answer(std::span<const WordId> words, unsigned replica, HitCounts* counts) {
    Answer answer;
    answer.replica = replica;
    answer.changes = &changes_[replica];
    ReplicaFigures& figures = result_.replicas[replica];
    CacheModel& cache = caches_[replica];
    for (const WordId word : words) {
      if (counts != nullptr) look_everywhere(word, *counts);
      evicted_.clear();
      const bool hit = cache.use(word, pages_[word], evicted_);
      for (const WordId gone : evicted_) changes_[replica].add({gone, false});
      if (!hit && cache.contains(word)) changes_[replica].add({word, true});
      answer.accessed_pages += pages_[word];
      figures.missed_pages += hit ? 0 : pages_[word];
    }
    ++figures.queries;
    figures.accessed_pages += answer.accessed_pages;
    chooser_.on_answer(answer);
  }

  void look_everywhere(WordId word, HitCounts& counts) const {
    ++counts.occurrences[word];
    for (std::size_t r = 0; r < caches_.size(); ++r) {
      counts.hits[word * caches_.size() + r] += caches_[r].contains(word) ? 1 : 0;
    }
  }

  const ListPages& pages_;
  ReplicaChooser& chooser_;
  std::vector<CacheModel> caches_;
  std::vector<CacheChanges> changes_;
  std::vector<WordId> evicted_;
  SimulationResult result_;
};

template <typename Member>
std::vector<double> values(const std::vector<ReplicaFigures>& replicas, Member member) {
  std::vector<double> result;
  for (const ReplicaFigures& figures : replicas) result.push_back(static_cast<double>(figures.*member));
  return result;
}

}  // namespace

double SimulationResult::miss_rate() const {
  double accessed = 0.0;
  double missed = 0.0;
  for (const ReplicaFigures& figures : replicas) {
    accessed += static_cast<double>(figures.accessed_pages);
    missed += static_cast<double>(figures.missed_pages);
  }
  return accessed > 0.0 ? missed / accessed : 0.0;
}

double SimulationResult::load_imbalance() const {
  const std::vector<double> loads = values(replicas, &ReplicaFigures::accessed_pages);
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return sum > 0.0 ? *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / sum : 1.0;
}

SimulationResult simulate(const QueryLog& log, const ListPages& pages, const SimulationOptions& options,
                          ReplicaChooser& chooser, HitCounts* counts) {
  return Simulation(pages, options, chooser).run(log, counts);
}

std::uint64_t cache_pages_for(const QueryLog& log, const ListPages& pages, double miss_rate, Eviction eviction) {
  FingerprintChooser chooser(1);
  std::uint64_t too_small = 0;
  std::uint64_t enough = std::accumulate(pages.begin(), pages.end(), std::uint64_t{0});
  while (enough - too_small > enough / 1000 + 1) {
    const std::uint64_t middle = too_small + (enough - too_small) / 2;
    const SimulationOptions options{.replicas = 1, .cache_pages = middle, .eviction = eviction};
    (simulate(log, pages, options, chooser).miss_rate() <= miss_rate ? enough : too_small) = middle;
  }
  return enough;
}

}  // namespace fjord::affinity
