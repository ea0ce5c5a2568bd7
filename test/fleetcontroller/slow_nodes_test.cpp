#include "slow_nodes.h"

#include <catch2/catch.hpp>

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

TEST_CASE("slow nodes: a mark goes when for some seconds no majority has found the node slow") {
  SlowNodes slow;
  MonotonicTime now{1'000'000};
  REQUIRE(slow.update({report(true)}, now).size() == 1);
  for (int i = 0; i < 20; ++i) {
    now = now + seconds(1);
    CHECK(slow.update({report(i % 3 == 0)}, now).empty());
  }
  CHECK(slow.nodes().size() == 1);
  now = now + seconds(10);
  const auto changes = slow.update({report(false)}, now);
  REQUIRE(changes.size() == 1);
  CHECK_FALSE(changes[0].slow);
  CHECK(slow.nodes().empty());
  CHECK(slow.reason(4).empty());
}

}  // namespace fjord::fleetcontroller
