#include "fjord/common/random.h"

#include <catch2/catch.hpp>
#include <vector>

namespace fjord {
namespace {

TEST_CASE("random: a seed gives the same numbers for ever") {
  Random random(42);
  CHECK(random.next() == 0x15780b2e0c2ec716);
  CHECK(random.next() == 0x6104d9866d113a7e);
  Random again(42);
  Random other(43);
  const std::uint64_t first = again.next();
  CHECK(first == 0x15780b2e0c2ec716);
  CHECK(other.next() != first);
}

TEST_CASE("random: below is uniform within its bound") {
  Random random(1);
  std::vector<int> counts(10);
  for (int i = 0; i < 100'000; ++i) ++counts.at(random.below(10));
  for (int count : counts) CHECK(count == Approx(10'000).margin(500));
  for (int i = 0; i < 100; ++i) CHECK(random.below(1) == 0);
  const std::uint64_t large = (std::uint64_t{1} << 63) + 1;
  int upper = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = random.below(large);
    REQUIRE(value < large);
    if (value >= large / 2) ++upper;
  }
  CHECK(upper == Approx(500).margin(80));
}

TEST_CASE("random: uniform is in [0, 1) and chance follows its probability") {
  Random random(1);
  double sum = 0;
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) {
    const double value = random.uniform();
    REQUIRE((value >= 0 && value < 1));
    sum += value;
    if (random.chance(0.25)) ++hits;
  }
  CHECK(sum == Approx(50'000).margin(500));
  CHECK(hits == Approx(25'000).margin(700));
  CHECK_FALSE(random.chance(0));
  CHECK(random.chance(1));
}

TEST_CASE("random: a fork is a stream of its own") {
  Random random(1);
  Random fork = random.fork();
  int equal = 0;
  for (int i = 0; i < 100; ++i) equal += fork.next() == random.next() ? 1 : 0;
  CHECK(equal == 0);
}

TEST_CASE("random: the operating system gives a different seed each time") {
  CHECK(Random::from_system().next() != Random::from_system().next());
}

}  // namespace
}  // namespace fjord
