#include "slow_nodes.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

namespace fjord::fleetcontroller {
namespace {

/// Returns a distributor's report about storage node 4.
SlowNodes::Report report(bool suspect) { return {"distributor.0", {{4, 50'000, 900, 500, 800, suspect}}}; }
const SlowNodes::Report kNothing = {"distributor.0", {}};

}  // namespace

TEST_CASE("slow nodes: more than half of those that have measured a node have to find it slow") {
  SlowNodes slow;
  const MonotonicTime now{1'000'000};
  CHECK(slow.update({}, now).empty());
  CHECK(slow.update({report(true), report(false)}, now).empty());
  CHECK(slow.update({report(false), report(false), report(true)}, now).empty());
  CHECK(slow.nodes().empty());
  const auto changes = slow.update({report(true), kNothing, kNothing}, now);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].node == 4);
  CHECK(changes[0].slow);
  CHECK(slow.nodes() == std::vector<std::uint16_t>{4});
  CHECK(slow.reason(4) ==
        "reads take 50.0 ms (others 0.5 ms), writes take 0.9 ms (others 0.8 ms); 1 of 1 distributors");
  CHECK(slow.reason(3).empty());
  CHECK(slow.update({report(true)}, now).empty());  // An equal report changes nothing.
}

TEST_CASE("slow nodes: a mark goes when for some seconds no majority has found the node slow, the report later") {
  SlowNodes slow;
  MonotonicTime now{1'000'000};
  REQUIRE(slow.update({report(true)}, now).size() == 1);
  for (int i = 0; i < 20; ++i) {
    now = now + seconds(1);
    CHECK(slow.update({report(i % 3 == 0)}, now).empty());
    CHECK(slow.nodes().size() == 1);
  }
  now = now + seconds(10);
  CHECK(slow.update({report(false)}, now).empty());
  CHECK(slow.nodes().empty());
  CHECK_FALSE(slow.reason(4).empty());
  now = now + SlowNodes::kQuiet;
  const auto changes = slow.update({report(false)}, now);
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].slow);
  CHECK(slow.reason(4).empty());
}

TEST_CASE("slow nodes: a node that is a little slow now and then is avoided each time, and not reported each time") {
  // As seen on an idle machine: writes of 12 ms for ten seconds, each 70 seconds, for 22 minutes.
  SlowNodes slow;
  const SlowNodes::Report little = {"distributor.0", {{4, 0, 12'000, 0, 900, true}}};
  std::size_t changes = 0;
  std::size_t marks = 0;
  bool was_marked = false;
  for (std::int64_t ms = 0; ms < 22 * 60'000; ms += 300) {
    const MonotonicTime now = MonotonicTime{1'000'000} + milliseconds(ms);
    changes += slow.update({ms % 70'000 < 10'000 ? little : report(false)}, now).size();
    const bool is_marked = !slow.nodes().empty();
    marks += is_marked && !was_marked ? 1 : 0;
    was_marked = is_marked;
  }
  CHECK(marks == 19);
  CHECK(changes <= 1);
}

TEST_CASE(
    "slow nodes: a node that stays a little slow is reported once, after a minute, until it was well for half of one") {
  SlowNodes slow;
  const SlowNodes::Report little = {"distributor.0", {{4, 0, 12'000, 0, 900, true}}};
  std::vector<std::pair<std::int64_t, bool>> changes;
  for (std::int64_t s = 0; s < 400; ++s) {
    const bool is_slow = s < 200 && s % 20 < 18;
    for (const auto& change : slow.update({is_slow ? little : report(false)}, MonotonicTime{1'000'000} + seconds(s))) {
      changes.emplace_back(s, change.slow);
    }
  }
  REQUIRE(changes.size() == 2);
  CHECK(changes[0] == std::pair<std::int64_t, bool>(60, true));
  CHECK(changes[1] == std::pair<std::int64_t, bool>(197 + 31, false));
}

TEST_CASE("slow nodes: a node that does not answer, or takes very long, is reported at once") {
  SlowNodes slow;
  const MonotonicTime now{1'000'000};
  const bool is_silent = GENERATE(true, false);
  const auto changes = slow.update({{"distributor.0", {{4, is_silent ? 0 : 51'000, 0, 0, 0, true}}}}, now);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].slow);
}

}  // namespace fjord::fleetcontroller
