#include "fjord/affinity/shadow_caches.h"

#include <catch2/catch.hpp>

namespace fjord::affinity {
namespace {

struct Fixture {
  VotingTable table{2, 3};
  ListPages pages{10, 20, 30};
  std::vector<std::uint64_t> hashes{4, 5, 7};

  Fixture() { table.set(0, std::vector<float>{2.0F, 6.0F}); }
  std::vector<double> votes(const ShadowCaches& shadow, WordId word, double floor = 0.0) const {
    std::vector<double> votes(2);
    shadow.add_votes(std::vector<WordId>{word}, floor, votes);
    return votes;
  }
};

TEST_CASE("a list in a cache costs nothing there and its pages elsewhere, whatever the table says") {
  const Fixture f;
  ShadowCaches shadow(f.table, f.pages, f.hashes);
  shadow.apply(1, {0, true});
  CHECK(f.votes(shadow, 0) == std::vector<double>{10.0, 0.0});
  CHECK(f.votes(shadow, 0, 0.1) == std::vector<double>{11.0, 1.0});
  shadow.apply(0, {0, true});
  CHECK(f.votes(shadow, 0) == std::vector<double>{0.0, 0.0});
}

TEST_CASE("a list in no cache votes by the table, a word that nobody knows by its hash") {
  const Fixture f;
  ShadowCaches shadow(f.table, f.pages, f.hashes);
  CHECK(f.votes(shadow, 0) == std::vector<double>{2.0, 6.0});
  CHECK(f.votes(shadow, 1) == std::vector<double>{20.0, 0.0});
  shadow.apply(0, {1, true});
  CHECK(f.votes(shadow, 1) == std::vector<double>{0.0, 20.0});
  shadow.apply(0, {1, false});
  CHECK(f.votes(shadow, 1) == std::vector<double>{20.0, 0.0});
}

TEST_CASE("of a replica that restarted nothing is believed") {
  const Fixture f;
  ShadowCaches shadow(f.table, f.pages, f.hashes);
  for (const unsigned replica : {0U, 1U}) shadow.apply(replica, {2, true});
  shadow.clear(0);
  CHECK_FALSE(shadow.contains(0, 2));
  CHECK(shadow.contains(1, 2));
}

TEST_CASE("changes are given from any number that is kept, in order, and never a part of them") {
  CacheChanges changes(4);
  for (WordId word = 0; word < 6; ++word) changes.add({word, word % 2 == 0});
  const auto words = [&](std::uint64_t from) {
    std::vector<WordId> seen;
    const bool complete = changes.for_each_from(from, [&](CacheChange change) { seen.push_back(change.word); });
    CHECK(complete == !(from < 2 || from > 6));
    return seen;
  };
  CHECK(changes.next() == 6);
  CHECK(words(6).empty());
  CHECK(words(4) == std::vector<WordId>{4, 5});
  CHECK(words(2) == std::vector<WordId>{2, 3, 4, 5});
  CHECK(words(1).empty());
  CHECK(words(7).empty());
}

}  // namespace
}  // namespace fjord::affinity
