#include "fjord/affinity/vote.h"

#include <array>
#include <catch2/catch.hpp>
#include <numeric>

#include "fjord/common/random.h"

namespace fjord::affinity {
namespace {

VotingTable table_of(std::vector<std::vector<float>> rows) {
  VotingTable table(static_cast<unsigned>(rows[0].size()), rows.size());
  for (WordId word = 0; word < rows.size(); ++word) table.set(word, rows[word]);
  return table;
}

/// Returns the fingerprint in the middle of part `i` of `n`.
std::uint64_t in_part(unsigned i, unsigned n) { return static_cast<std::uint64_t>((i + 0.5) / n * 0x1p64); }

TEST_CASE("the votes of the words add up, and words that a table does not know weigh nothing") {
  VotingTable table(2, 3);
  table.set(0, std::vector<float>{0.0F, 5.0F});
  table.set(2, std::vector<float>{3.0F, 1.0F});
  CHECK_FALSE(table.knows(1));
  CHECK(table.known_words() == 2);
  std::vector<double> votes(2);
  add_votes(table, std::vector<WordId>{0, 1, 2, 77}, {10, 20, 30}, 0.0, votes);
  CHECK(votes == std::vector<double>{3.0, 6.0});
  std::fill(votes.begin(), votes.end(), 0.0);
  add_votes(table, std::vector<WordId>{0, 1, 2}, {10, 20, 30}, 0.1, votes);
  CHECK(votes[0] == Approx(3.0 + 4.0));
  CHECK(votes[1] == Approx(6.0 + 4.0));
}

TEST_CASE("the replica with the least votes wins, whatever the fingerprint") {
  const std::vector<double> shares(3, 1.0 / 3.0);
  for (unsigned part = 0; part < 10; ++part) {
    CHECK(choose_replica(std::vector<double>{2.0, 1.0, 4.0}, shares, in_part(part, 10)) == 1);
  }
}

TEST_CASE("a tie is broken among those that tie, by the fingerprint") {
  const std::vector<double> shares(3, 1.0 / 3.0);
  const std::vector<double> votes{1.0, 9.0, 1.0};
  CHECK(choose_replica(votes, shares, in_part(0, 2)) == 0);
  CHECK(choose_replica(votes, shares, in_part(1, 2)) == 2);
}

TEST_CASE("without votes a fingerprint falls into segments as wide as the shares") {
  const std::vector<double> votes(3, 0.0);
  const std::vector<double> shares{0.5, 0.3, 0.2};
  std::array<int, 3> chosen{};
  for (unsigned part = 0; part < 10; ++part) ++chosen[choose_replica(votes, shares, in_part(part, 10))];
  CHECK(chosen == std::array<int, 3>{5, 3, 2});
  CHECK(choose_replica(votes, shares, UINT64_MAX) == 2);
}

TEST_CASE("votes are divided by shares: a small share sheds queries") {
  const std::vector<double> votes{1.0, 1.5};
  CHECK(choose_replica(votes, std::vector<double>{0.5, 0.5}, 0) == 0);
  CHECK(choose_replica(votes, std::vector<double>{0.35, 0.65}, 0) == 1);
}

TEST_CASE("shares add up to 1, move away from load, and keep their floor") {
  Random random(5);
  Multipliers multipliers(4);
  for (int i = 0; i < 20'000; ++i) {
    const auto replica = static_cast<unsigned>(random.below(4));
    multipliers.on_answer(replica, replica == 3 ? 1.0 : 0.2 * random.uniform());
    const std::span<const double> shares = multipliers.shares();
    REQUIRE(std::accumulate(shares.begin(), shares.end(), 0.0) == Approx(1.0));
    for (const double share : shares) REQUIRE(share >= 0.2 / 4 - 1e-12);
  }
  CHECK(multipliers.share(3) == Approx(0.05).margin(0.001));
}

TEST_CASE("one answer moves a share by beta times the difference to the mean") {
  Multipliers multipliers(2);
  multipliers.on_answer(0, 0.6);
  // Replica 1 has not answered, so the mean is 0.3. Share 0 becomes 0.5 - 0.01 * 0.3; then the sum is scaled to 1.
  const double before = 0.497;
  const double least = 0.1;
  CHECK(multipliers.share(0) == Approx(least + (before - least) * 0.8 / (before + 0.5 - 2 * least)));
  CHECK(multipliers.share(0) < multipliers.share(1));
}

TEST_CASE("a replica that reported a busy moment gets its share back without being asked") {
  Multipliers multipliers(5);
  multipliers.on_answer(4, 1.0);
  for (int i = 0; i < 2'000; ++i) multipliers.on_answer(static_cast<unsigned>(i % 4), 0.1);
  // The old report of replica 4 has faded to less than the 0.1 that the others report.
  CHECK(multipliers.share(4) > 0.2);
}

TEST_CASE("shares go back to equal ones when all replicas report the same") {
  Multipliers multipliers(2);
  for (int i = 0; i < 100; ++i) {
    multipliers.on_answer(0, 0.6);
    multipliers.on_answer(1, 0.4);
  }
  const double before = multipliers.share(1);
  REQUIRE(before > 0.55);
  for (int i = 0; i < 2'000; ++i) multipliers.on_answer(static_cast<unsigned>(i % 2), 0.0);
  CHECK(multipliers.share(1) < 0.5 + 0.5 * (before - 0.5));
}

TEST_CASE("shares of nodes follow their loads, and begin anew with other nodes only") {
  NodeShares shares;
  CHECK(shares.share(4) > 0.0);
  shares.follow({4, 7});
  CHECK(shares.share(4) == Approx(0.5));
  shares.on_answer(9, 1.0);
  CHECK(shares.share(4) == Approx(0.5));
  for (int i = 0; i < 20; ++i) {
    shares.on_answer(4, 0.9);
    shares.on_answer(7, 0.1);
  }
  const double share = shares.share(4);
  CHECK(share < 0.45);
  CHECK(share + shares.share(7) == Approx(1.0));
  shares.follow({4, 7});
  CHECK(shares.share(4) == share);
  shares.follow({4, 7, 8});
  CHECK(shares.share(4) == Approx(1.0 / 3.0));
}

TEST_CASE("with many nodes a share changes in smaller steps") {
  std::vector<std::uint16_t> nodes(100);
  std::iota(nodes.begin(), nodes.end(), std::uint16_t{0});
  NodeShares shares;
  shares.follow(nodes);
  shares.on_answer(3, 1.0);
  // 0.05 / 100 at most, where 0.01 would have brought it to the floor of 0.002.
  CHECK(shares.share(3) > 0.0094);
  CHECK(shares.share(3) < 0.0096);
}

TEST_CASE("with the floor a replica that all words prefer sheds queries; without it none") {
  const VotingTable table = table_of({{0.0F, 10.0F}});
  const std::vector<double> shares{0.1, 0.9};
  std::vector<double> without(2);
  add_votes(table, std::vector<WordId>{0}, {10}, 0.0, without);
  CHECK(choose_replica(without, shares, 0) == 0);
  std::vector<double> with(2);
  add_votes(table, std::vector<WordId>{0}, {10}, 0.2, with);
  CHECK(choose_replica(with, shares, 0) == 1);
}

}  // namespace
}  // namespace fjord::affinity
