#include "fjord/affinity/training.h"

#include <catch2/catch.hpp>

namespace fjord::affinity {
namespace {

TEST_CASE("a step moves weights half way to the pages that were missed") {
  // Both words fit into one cache. Replica 0 gets all queries with word 0, so the word is always in its cache and never
  // in the cache of replica 1.
  QueryLog log;
  for (int i = 0; i < 4; ++i) log.add({0});
  VotingTable table(2, 2);
  table.set(0, std::vector<float>{1.0F, 4.0F});
  const ListPages pages{8, 8};
  const SimulationOptions options{.replicas = 2, .cache_pages = 100};
  const VotingTable once = refine(table, log, pages, options, {.rounds = 1, .step = 0.5});
  CHECK(once.weights(0)[0] == Approx(0.5));
  CHECK(once.weights(0)[1] == Approx(6.0));
  const VotingTable whole = refine(table, log, pages, options, {.rounds = 1, .step = 1.0});
  CHECK(whole.weights(0)[0] == Approx(0.0));
  CHECK(whole.weights(0)[1] == Approx(8.0));
  CHECK_FALSE(once.knows(1));
}

TEST_CASE("a word of the table that the log does not have keeps its weights") {
  QueryLog log;
  log.add({0});
  VotingTable table(2, 2);
  table.set(1, std::vector<float>{1.0F, 2.0F});
  const VotingTable refined = refine(table, log, {1, 2}, {.replicas = 2, .cache_pages = 10}, {.rounds = 3});
  CHECK(refined.weights(1)[0] == 1.0F);
  CHECK(refined.weights(1)[1] == 2.0F);
}

TEST_CASE("the best of ten random clusterings misses no more than each of them") {
  QueryLog log;
  Random random(8);
  for (int i = 0; i < 3000; ++i) {
    log.add({static_cast<WordId>(random.below(200)), static_cast<WordId>(random.below(1 + random.below(200)))});
  }
  const ListPages pages(200, 5);
  const SimulationOptions options{.replicas = 3, .cache_pages = 400};
  const auto missed = [&](const Clustering& clustering) {
    const VotingTable table = binary_table(clustering, pages, 3);
    VotingChooser chooser(table, pages);
    return simulate(log, pages, options, chooser).miss_rate();
  };
  for (const std::uint64_t seed : {6, 7, 8}) {
    Random first(seed);
    Random second(seed);
    const Clustering best = best_random_clustering(log, pages, options, 10, first);
    for (int draw = 0; draw < 10; ++draw) CHECK(missed(best) <= missed(random_clustering(log, pages, 3, second)));
  }
}

}  // namespace
}  // namespace fjord::affinity
