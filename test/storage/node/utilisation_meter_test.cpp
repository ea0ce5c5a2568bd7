#include "utilisation_meter.h"

#include <catch2/catch.hpp>

#include "storage/node/node_world.h"

namespace fjord::test {
namespace {

using storage::UtilisationMeter;

constexpr Duration kPeriod = milliseconds(200);

/// `stripes` of which one is busy for `busy` of each period, for `periods`.
std::uint32_t permille_after(unsigned stripes, Duration busy, int periods, std::function<double()> machine_load = {}) {
  MonotonicTime now{5'000'000};
  UtilisationMeter meter(now, stripes, std::move(machine_load));
  for (int i = 0; i < periods; ++i) {
    meter.add(busy);
    now = now + kPeriod;
    meter.end_period(now);
  }
  return meter.permille();
}

}  // namespace

TEST_CASE("utilisation: the busy time of stripes over the time of all stripes") {
  CHECK(permille_after(1, milliseconds(100), 50) == 499);
  CHECK(permille_after(2, milliseconds(100), 50) == 249);
  CHECK(permille_after(1, milliseconds(300), 50) == 999);  // Counts when an operation ends, so a period may have more.
}

TEST_CASE("utilisation: an average over about a second") {
  const std::uint32_t after_one_period = permille_after(1, milliseconds(200), 1);
  CHECK(after_one_period > 150);
  CHECK(after_one_period < 220);
  const std::uint32_t after_a_second = permille_after(1, milliseconds(200), 5);
  CHECK(after_a_second > 600);
  CHECK(after_a_second < 660);
}

TEST_CASE("utilisation: the machine's load counts if it is more, and an idle node is not unknown") {
  CHECK(permille_after(1, milliseconds(100), 50, [] { return 0.8; }) == 799);
  CHECK(permille_after(1, milliseconds(100), 50, [] { return 0.2; }) == 499);
  CHECK(permille_after(1, milliseconds(0), 50) == 1);
  CHECK(UtilisationMeter(MonotonicTime{7}, 2, {}).permille() == 1);
}

TEST_CASE("utilisation: a storage node tells it with each answer to operations") {
  storage::StorageNodeOptions options;
  options.machine_load = [] { return 0.4; };
  NodeWorld nodes(1, options);
  nodes.give_state(4);
  REQUIRE(nodes.install(0, 4, BucketId(3, 1), {ReplicaSet::make_epoch(4, 1), {0, 1}}));
  const std::uint16_t owner = nodes.owner(BucketId(3, 1));
  CHECK(nodes.apply(0, 4, owner, {}).utilisation_permille == 1);
  nodes.world.scheduler.run_for(seconds(10));
  CHECK(nodes.apply(0, 4, owner, {}).utilisation_permille > 390);
  CHECK(nodes.apply(0, 4, owner, {}).utilisation_permille <= 400);
}

}  // namespace fjord::test
