#include "fjord/affinity/clustering.h"

#include <catch2/catch.hpp>
#include <set>

namespace fjord::affinity {
namespace {

/// Makes queries for two groups of words: each query has three words of one group. Odd words are twice as large.
QueryLog two_groups(std::size_t words, std::size_t queries, Random& random) {
  QueryLog log;
  for (std::size_t i = 0; i < queries; ++i) {
    const std::uint64_t group = random.below(2);
    std::vector<WordId> query;
    for (int k = 0; k < 3; ++k) query.push_back(static_cast<WordId>(2 * random.below(words / 2) + group));
    log.add(query);
  }
  return log;
}

TEST_CASE("the table of a clustering expects a word in the cache of its replica only") {
  const VotingTable table = binary_table({1, kNoReplica, 0}, {7, 8, 9}, 2);
  CHECK(table.weights(0)[0] == 7.0F);
  CHECK(table.weights(0)[1] == 0.0F);
  CHECK_FALSE(table.knows(1));
  CHECK(table.weights(2)[0] == 0.0F);
  CHECK(table.weights(2)[1] == 9.0F);
}

TEST_CASE("words that occur less than four times have no replica") {
  QueryLog log;
  for (int i = 0; i < 4; ++i) log.add(i < 3 ? std::vector<WordId>{0, 1} : std::vector<WordId>{1});
  Random random(1);
  const Clustering clustering = random_clustering(log, {1, 1, 1}, 3, random);
  CHECK(clustering[0] == kNoReplica);
  CHECK(clustering[1] < 3);
  CHECK(clustering[2] == kNoReplica);
}

TEST_CASE("a query goes where it cuts least") {
  QueryLog log;
  log.add({0, 1, 2});  // 5 of its pages are on replica 0, 4 on replica 1: sent to replica 0, it cuts 4.
  log.add({0, 2});     // 2 of its pages are on replica 0, 4 on replica 1: sent to replica 1, it cuts 2.
  log.add({3});        // This query does not count: word 3 is on no replica.
  const ListPages pages{2, 3, 4, 50};
  CHECK(cut_part(log, pages, {0, 0, 1, kNoReplica}, 2) == Approx(6.0 / 15.0));
  CHECK(cut_part(log, pages, {0, 0, 0, kNoReplica}, 2) == 0.0);
}

TEST_CASE("the imbalance of pages is the fullest replica over the mean") {
  CHECK(mass_imbalance({0, 1, 1, kNoReplica}, {10, 10, 20, 999}, 2) == Approx(1.5));
}

TEST_CASE("partitioning finds groups of words that are asked for together, and balances their pages") {
  Random random(2);
  const std::size_t words = 400;
  const QueryLog log = two_groups(words, 20'000, random);
  // Both groups have the same sum of pages.
  ListPages pages;
  for (std::size_t word = 0; word < words; ++word) pages.push_back(static_cast<std::uint32_t>(1 + word / 2 % 9));
  const Result<Clustering> clustering = partition(log, pages, {.replicas = 2});
  REQUIRE(clustering);
  CHECK(cut_part(log, pages, *clustering, 2) < 0.01);
  CHECK(mass_imbalance(*clustering, pages, 2) <= 1.031);
  for (WordId word = 2; word < words; ++word) CHECK((*clustering)[word] == (*clustering)[word % 2]);
  CHECK(*partition(log, pages, {.replicas = 2}) == *clustering);
}

TEST_CASE("partitioning keeps together what many queries ask for, not what many different queries ask for") {
  constexpr WordId kWords = 40;
  QueryLog log;
  // There are as many different queries for two words of one group, even or odd, as for words of both.
  for (WordId word = 0; word < kWords; ++word) {
    for (WordId other = word + 1; other < kWords; ++other) {
      const int times = (other - word) % 2 == 0 ? 20 : 1;
      for (int i = 0; i < times; ++i) log.add({word, other});
    }
  }
  const Result<Clustering> clustering = partition(log, ListPages(kWords, 2), {.replicas = 2});
  REQUIRE(clustering);
  for (WordId word = 0; word < kWords; ++word) CHECK((*clustering)[word] == (*clustering)[word % 2]);
  CHECK((*clustering)[0] != (*clustering)[1]);
}

TEST_CASE("partitions of words that belong to no group are balanced too, for each number of replicas") {
  Random random(4);
  QueryLog log;
  ListPages pages;
  for (int i = 0; i < 600; ++i) pages.push_back(static_cast<std::uint32_t>(1 + random.below(50)));
  for (int i = 0; i < 10'000; ++i) {
    log.add({static_cast<WordId>(random.below(600)), static_cast<WordId>(random.below(600)),
             static_cast<WordId>(random.below(1 + random.below(600)))});
  }
  for (unsigned replicas = 1; replicas <= 7; ++replicas) {
    CAPTURE(replicas);
    const Result<Clustering> clustering = partition(log, pages, {.replicas = replicas});
    REQUIRE(clustering);
    CHECK(mass_imbalance(*clustering, pages, replicas) <= 1.031);
    CHECK(std::set<std::uint8_t>(clustering->begin(), clustering->end()).size() >= replicas);
    const double by_chance = cut_part(log, pages, random_clustering(log, pages, replicas, random), replicas);
    if (replicas > 1) CHECK(cut_part(log, pages, *clustering, replicas) < by_chance);
  }
}

TEST_CASE("with a tolerance for load the pages accessed are balanced too") {
  Random random(9);
  const std::size_t words = 400;
  QueryLog log;
  // Four of five queries are about group 0. Some queries about group 1 also have a word of group 0.
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t group = random.below(5) == 0 ? 1 : 0;
    const std::uint64_t other = random.chance(0.3) ? 0 : group;
    log.add({static_cast<WordId>(2 * random.below(words / 2) + group),
             static_cast<WordId>(2 * random.below(words / 2) + other)});
  }
  const ListPages pages(words, 3);
  const std::vector<std::uint32_t> occurrences = count_occurrences(log, words);
  const auto load = [&](const Clustering& clustering) {
    ListPages accessed(words);
    for (std::size_t word = 0; word < words; ++word) accessed[word] = pages[word] * occurrences[word];
    return mass_imbalance(clustering, accessed, 2);
  };
  CHECK(load(*partition(log, pages, {.replicas = 2})) > 1.3);
  const Result<Clustering> even = partition(log, pages, {.replicas = 2, .load_tolerance = 0.1});
  REQUIRE(even);
  CHECK(load(*even) <= 1.2);
  CHECK(mass_imbalance(*even, pages, 2) <= 1.031);
}

TEST_CASE("sums beyond what METIS can count are scaled") {
  Random random(2);
  const QueryLog log = two_groups(200, 5000, random);
  const ListPages pages(200, 3'000'000'000);
  const Result<Clustering> clustering = partition(log, pages, {.replicas = 2});
  REQUIRE(clustering);
  CHECK(cut_part(log, pages, *clustering, 2) < 0.01);
}

TEST_CASE("a log with fewer words than replicas is refused, and so is a word that no replica can balance") {
  QueryLog log;
  for (int i = 0; i < 10; ++i) log.add({0, 1});
  CHECK(partition(log, {1, 1}, {.replicas = 3}).error().code() == StatusCode::InvalidArgument);
  for (int i = 0; i < 10; ++i) log.add({0, 1, 2, 3});
  CHECK(partition(log, {1000, 1, 1, 1}, {.replicas = 2}).error().code() == StatusCode::InvalidArgument);
}

TEST_CASE("a clustering is degraded by as many words as asked for") {
  Random random(3);
  const Clustering clustering(10'000, 2);
  CHECK(degrade(clustering, 5, 0.0, random) == clustering);
  const Clustering half = degrade(clustering, 5, 0.5, random);
  const auto same = static_cast<double>(std::count(half.begin(), half.end(), 2)) / 10'000.0;
  CHECK(same == Approx(0.6).margin(0.02));
}

}  // namespace
}  // namespace fjord::affinity
