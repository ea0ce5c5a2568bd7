#include "fjord/search/search_costs.h"

#include <catch2/catch.hpp>
#include <map>

namespace fjord::search {
namespace {

spi::SearchLoad sum_of(const std::vector<spi::SearchLoad>& loads) {
  spi::SearchLoad sum;
  for (const spi::SearchLoad& load : loads) {
    sum.ns += load.ns;
    sum.candidates += load.candidates;
    sum.pages += load.pages;
  }
  return sum;
}

}  // namespace

TEST_CASE("search costs: the time of the auction goes to slices by matches, that of comparing by keywords") {
  SearchCosts costs;
  costs.begin(16);
  for (int i = 0; i < 3; ++i) costs.add_scanned(4);
  costs.add_candidate(4);
  costs.add_scanned(9);
  costs.add_candidate(9);
  costs.add_candidate(9);
  costs.add_candidate(9);
  CHECK(costs.scanned() == 4);
  const auto loads = costs.divide(4, {Duration(40), Duration(400), 8});
  REQUIRE(loads.size() == 2);
  CHECK(loads[0].bucket == BucketId(4, 4));
  CHECK(loads[0].ns == 30'000 + 100'000);
  CHECK(loads[0].candidates == 1);
  CHECK(loads[0].pages == 6);
  CHECK(loads[1].bucket == BucketId(4, 9));
  CHECK(loads[1].ns == 10'000 + 300'000);
  CHECK(loads[1].candidates == 3);
  CHECK(loads[1].pages == 2);
}

TEST_CASE("search costs: the parts add up to the whole, whatever the numbers") {
  SearchCosts costs;
  for (std::uint64_t run = 1; run < 50; ++run) {
    costs.begin(8);
    std::uint64_t candidates = 0;
    for (std::uint64_t i = 0; i < run * 7; ++i) {
      const std::size_t slice = i * i % 8;
      costs.add_scanned(slice);
      if (i % 3 != 0) continue;
      costs.add_candidate(slice);
      ++candidates;
    }
    const auto time = static_cast<std::int64_t>(run);
    const spi::SearchLoad sum = sum_of(costs.divide(3, {Duration(17 * time), Duration(5 * time), 13 * run}));
    CHECK(sum.ns == 22'000 * run);
    CHECK(sum.candidates == candidates);
    CHECK(sum.pages == 13 * run);
  }
}

TEST_CASE("search costs: without a match all time goes by keywords, and a search without keywords costs nothing") {
  SearchCosts costs;
  costs.begin(4);
  costs.add_scanned(1);
  CHECK(sum_of(costs.divide(2, {Duration(10), Duration(2), 1})).ns == 12'000);
  costs.begin(4);
  CHECK(costs.divide(2, {Duration(10), Duration(2), 1}).empty());
}

}  // namespace fjord::search
