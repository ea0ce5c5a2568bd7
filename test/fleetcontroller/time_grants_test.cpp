#include "time_grants.h"

#include <catch2/catch.hpp>
#include <optional>

#include "fjord/common/random.h"

namespace fjord::fleetcontroller {

TEST_CASE("time grants: nothing is granted above what is stored, and nothing while a state is pending") {
  TimeGrants grants;
  grants.begin(5'000'000);
  grants.follow(0, std::nullopt);
  const WallTime now{100'000'000};
  CHECK(grants.grant(now) == 5'000'000);
  const std::optional<std::uint64_t> limit = grants.limit_to_store(now);
  REQUIRE(limit == 110'000'000);
  CHECK(grants.grant(now) == 5'000'000);  // The higher limit is not stored yet.
  grants.stored(*limit);
  CHECK(grants.grant(now) == 101'000'000);
  CHECK_FALSE(grants.limit_to_store(now));

  const std::uint64_t floor = grants.freeze(0);
  CHECK(floor == 101'100'000);
  CHECK(grants.grant(WallTime{103'000'000}) == 101'000'000);
  grants.follow(0, floor);
  CHECK(grants.grant(WallTime{103'000'000}) == 101'000'000);
  grants.follow(floor, std::nullopt);
  CHECK(grants.grant(WallTime{103'000'000}) == 104'000'000);
  CHECK(grants.grant(WallTime{50'000'000}) == 104'000'000);  // The clock steps back, but the grant does not.
}

TEST_CASE("time grants: floors of states that follow each other at once leave room for writes between them") {
  TimeGrants grants;
  grants.begin(7'000'000);
  const std::uint64_t first = grants.freeze(0);
  grants.follow(first, std::nullopt);
  CHECK(grants.freeze(first) == first + 1'000'000);
}

TEST_CASE("time grants: a leader that takes over a pending state stays below the floor of that state") {
  TimeGrants grants;
  grants.begin(20'000'000);  // The leader before this one had stored this limit, and granted less.
  grants.follow(5'000'000, 12'000'000);
  CHECK(grants.grant(WallTime{15'000'000}) == 11'900'000);
  SECTION("until the state is active") {
    grants.follow(12'000'000, std::nullopt);
    CHECK(grants.grant(WallTime{15'000'000}) == 20'000'000);
  }
  SECTION("or replaced, by one with a floor above all that a former leader may have granted") {
    const std::uint64_t floor = grants.freeze(12'000'000);
    CHECK(floor == 20'100'000);
    grants.follow(5'000'000, floor);
    CHECK(grants.grant(WallTime{15'000'000}) == 20'000'000);
  }
}

/// Successive leaders with different clocks; each is cut off without notice and goes on granting.
TEST_CASE("time grants: whatever clocks say, no floor is below what any leader ever granted under earlier states") {
  Random random(5);
  std::uint64_t stored = 0;
  std::uint64_t active_floor = 0;
  std::optional<std::uint64_t> pending_floor;
  std::uint64_t highest = 0;
  TimeGrants deposed;
  // A distributor whose clock is ahead goes on from the granted time, by a microsecond a write.
  const auto writes = [&] { return random.below(50'000); };
  for (int term = 0; term < 300; ++term) {
    std::int64_t clock = static_cast<std::int64_t>(random.below(7'200'000'000));
    const auto now = [&] { return WallTime{clock += static_cast<std::int64_t>(random.below(3'000'000))}; };
    TimeGrants leader;
    leader.begin(stored);
    leader.follow(active_floor, pending_floor);
    for (int step = 0; step < 40; ++step) {
      if (term > 0 && random.chance(0.3)) highest = std::max(highest, deposed.grant(now()) + writes());
      if (random.chance(0.5)) highest = std::max(highest, leader.grant(now()) + writes());
      if (const auto limit = leader.limit_to_store(now()); limit && random.chance(0.5)) {
        stored = *limit;
        leader.stored(stored);
      }
      if (!random.chance(0.3)) continue;
      if (pending_floor) {
        REQUIRE(*pending_floor >= highest);
        active_floor = *std::exchange(pending_floor, std::nullopt);
      } else {
        const std::uint64_t floor = leader.freeze(active_floor);
        REQUIRE(floor >= highest);
        REQUIRE(floor > active_floor);
        if (random.chance(0.2)) {  // The store could not store the state.
          leader.begin(stored);
        } else {
          pending_floor = floor;
        }
      }
      leader.follow(active_floor, pending_floor);
    }
    deposed = leader;
  }
}

}  // namespace fjord::fleetcontroller
