#include "fjord/affinity/simulator.h"

#include <catch2/catch.hpp>

#include "fjord/affinity/log_generator.h"
#include "fjord/affinity/training.h"

namespace fjord::affinity {
namespace {

QueryLog log_of(const std::vector<std::vector<WordId>>& queries) {
  QueryLog log;
  for (const auto& query : queries) log.add(query);
  return log;
}

/// Chooses the replicas in turn, and adds up the answers that it receives.
class Turns final : public ReplicaChooser {
 public:
  explicit Turns(unsigned replicas) : replicas_(replicas) {}
  unsigned choose(std::span<const WordId>, std::uint64_t) override { return next_++ % replicas_; }
  void on_answer(const Answer& answer) override {
    accessed += answer.accessed_pages;
    changes = answer.changes->next();
  }
  std::uint64_t accessed = 0;
  std::uint64_t changes = 0;

 private:
  unsigned replicas_;
  unsigned next_ = 0;
};

TEST_CASE("the first pass warms the caches up, the second one counts") {
  const QueryLog log = log_of({{0}, {1}, {0, 2}});
  Turns turns(1);
  const SimulationOptions options{.replicas = 1, .cache_pages = 8};
  const SimulationResult result = simulate(log, {1, 2, 5}, options, turns);
  CHECK(result.replicas[0].queries == 3);
  CHECK(result.replicas[0].accessed_pages == 9);
  CHECK(result.replicas[0].missed_pages == 0);
  CHECK(turns.accessed == 18);
  CHECK(turns.changes == 3);
}

TEST_CASE("a small cache misses, and misses and accesses are counted in pages") {
  // In a cache of 6 pages word 2 (5 pages) evicts word 1 (2 pages), and word 1 evicts word 2. Word 0 (1 page) stays.
  const QueryLog log = log_of({{0}, {1}, {0, 2}});
  Turns turns(1);
  const SimulationOptions options{.replicas = 1, .cache_pages = 6};
  const SimulationResult result = simulate(log, {1, 2, 5}, options, turns);
  CHECK(result.replicas[0].missed_pages == 7);
  CHECK(result.miss_rate() == Approx(7.0 / 9.0));
  // In both passes together, words 0, 1, 2, 1, 2 enter the cache and words 1, 2, 1 leave it.
  CHECK(turns.changes == 8);
}

TEST_CASE("all caches are looked into, also those that the query does not go to, and before it changes them") {
  const QueryLog log = log_of({{0}, {1}, {0}, {1}});
  Turns turns(2);
  const SimulationOptions options{.replicas = 2, .cache_pages = 1};
  HitCounts counts;
  const SimulationResult result = simulate(log, {1, 1}, options, turns, &counts);
  CHECK(result.miss_rate() == 0.0);
  CHECK(counts.occurrences == std::vector<std::uint32_t>{2, 2});
  CHECK(counts.hits == std::vector<std::uint32_t>{2, 0, 0, 2});
  CHECK(result.load_imbalance() == 1.0);
}

TEST_CASE("the smallest cache for a rate of misses is found to a thousandth") {
  QueryLog log;
  Random random(1);
  for (int i = 0; i < 4000; ++i) log.add({static_cast<WordId>(random.below(1 + random.below(300)))});
  ListPages pages;
  for (std::uint32_t word = 0; word < 300; ++word) pages.push_back(10 + word % 13);
  const std::uint64_t found = cache_pages_for(log, pages, 0.2, Eviction::LeastRecentlyUsed);
  const auto missed = [&](std::uint64_t cache) {
    FingerprintChooser chooser(1);
    const SimulationOptions options{.replicas = 1, .cache_pages = cache, .eviction = Eviction::LeastRecentlyUsed};
    return simulate(log, pages, options, chooser).miss_rate();
  };
  CHECK(missed(found) <= 0.2);
  CHECK(missed(found - found / 500 - 2) > 0.2);
}

struct World {
  Corpus corpus;
  const QueryLog& train;
  const QueryLog& test;
  SimulationOptions options;
  Clustering clustering;
  VotingTable table;
};

/// A small log with 4 replicas whose caches are each too small for it.
World small_world() {
  Random random(3);
  const QuerySource source = synthetic_queries(2000, 3000, random);
  GeneratorOptions options;
  options.queries = 8000;
  static Corpus corpus;
  corpus = generate_logs(source, options);
  const LogSet& logs = corpus.regions[0];
  const SimulationOptions simulation{
      .replicas = 4, .cache_pages = cache_pages_for(logs.test, corpus.pages, 0.25, Eviction::LeastFrequentlyUsed)};
  Clustering clustering = *partition(logs.train, corpus.pages, {.replicas = 4});
  VotingTable table = binary_table(clustering, corpus.pages, 4);
  return {corpus, logs.train, logs.test, simulation, clustering, table};
}

TEST_CASE("affinity misses less than fingerprints; multipliers level the load; shadows miss least") {
  const World world = small_world();
  FingerprintChooser by_fingerprint(4);
  const SimulationResult fingerprints = simulate(world.test, world.corpus.pages, world.options, by_fingerprint);
  CHECK(fingerprints.load_imbalance() < 1.1);
  VotingChooser by_table(world.table, world.corpus.pages);
  const SimulationResult table = simulate(world.test, world.corpus.pages, world.options, by_table);
  CHECK(table.miss_rate() < 0.8 * fingerprints.miss_rate());
  CHECK(table.load_imbalance() > 1.05);
  VotingChooser with_multipliers(world.table, world.corpus.pages, true);
  const SimulationResult level = simulate(world.test, world.corpus.pages, world.options, with_multipliers);
  CHECK(level.load_imbalance() < 1.03);
  CHECK(level.miss_rate() < 0.9 * fingerprints.miss_rate());
  for (const unsigned brokers : {1U, 5U}) {
    ShadowChooser shadow(world.table, world.corpus.pages, world.corpus.hashes,
                         {.with_multipliers = true, .brokers = brokers});
    const SimulationResult result = simulate(world.test, world.corpus.pages, world.options, shadow);
    CHECK(result.miss_rate() < level.miss_rate());
    CHECK(result.load_imbalance() < 1.05);
  }
}

TEST_CASE("refinement improves a table round after round, and keeps its words") {
  const World world = small_world();
  std::vector<double> missed;
  const VotingTable refined = refine(world.table, world.train, world.corpus.pages, world.options, {.rounds = 6},
                                     [&](unsigned round, const VotingTable&, double rate) {
                                       CHECK(round == missed.size());
                                       missed.push_back(rate);
                                     });
  REQUIRE(missed.size() == 7);
  CHECK(missed[5] < 0.95 * missed[0]);
  CHECK(refined.known_words() == world.table.known_words());
  VotingChooser before(world.table, world.corpus.pages);
  VotingChooser after(refined, world.corpus.pages);
  CHECK(simulate(world.test, world.corpus.pages, world.options, after).miss_rate() <
        simulate(world.test, world.corpus.pages, world.options, before).miss_rate());
}

}  // namespace
}  // namespace fjord::affinity
