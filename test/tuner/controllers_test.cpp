#include "fjord/tuner/controllers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "fjord/common/random.h"
#include "hand_clock.h"

namespace fjord::tuner {
namespace {

constexpr Duration kHour = seconds(3600);

}  // namespace

TEST_CASE("actuators: two loops do not turn the same knob") {
  Actuators actuators;
  CHECK(actuators.claim("storage.visitors_max", "visitors"));
  const Status refused = actuators.claim("storage.visitors_max", "jobs");
  CHECK(refused.code() == StatusCode::AlreadyExists);
  CHECK(refused.message().find("visitors") != std::string::npos);
  actuators.release("storage.visitors_max");
  CHECK(actuators.claim("storage.visitors_max", "jobs"));
}

TEST_CASE("entries: without limit until as many nodes as the quorum have met theirs") {
  EntriesController controller({2, 0.5, 256}, ControlMode::On);
  CHECK(controller.value() == EntriesController::kUnlimited);
  CHECK_FALSE(controller.report(1, 1000, 0.9).is_change);  // A single slow node does not decide for all.
  CHECK_FALSE(controller.report(1, 500, 0.9).is_change);
  CHECK_FALSE(controller.report(2, 20'000, 0.3).is_change);  // Searching takes only 30 % of the time of a put.
  CHECK(controller.report(3, 8000, 0.7).new_value == 8000);
  CHECK(controller.report(4, 4000, 0.7).new_value == 4000);  // The nodes say 500, 4000 and 8000: two cannot take 8000.
  CHECK_FALSE(controller.report(5, 9000, 0.7).is_change);
  CHECK(controller.value() == 4000);
}

TEST_CASE("entries: a reset forgets the slow nodes, and may change what counts as bound by the CPU") {
  EntriesController controller({1, 0.5, 256}, ControlMode::On);
  CHECK(controller.report(1, 600, 0.6).new_value == 600);
  CHECK(controller.reset(0.8).new_value == EntriesController::kUnlimited);
  CHECK_FALSE(controller.report(1, 600, 0.6).is_change);
  CHECK(controller.report(2, 100, 0.9).new_value == 256);  // The smallest permitted value.
}

TEST_CASE("entries: converges to the limit of the slowest nodes of a cluster that differ") {
  // A put searches all entries: the share of the search is n * t / (n * t + c).
  Random random(5);
  std::vector<double> per_entry(12);
  for (double& one : per_entry) one = 5e-9 * (1 + 3 * random.uniform());
  const double other = 20e-6;
  EntriesController controller({3, 0.5, 256}, ControlMode::On);
  for (std::int64_t entries = 100; entries < 20'000; entries += 100) {
    for (std::uint64_t node = 0; node < per_entry.size(); ++node) {
      const double search = static_cast<double>(std::min(entries, controller.value())) * per_entry[node];
      static_cast<void>(controller.report(node, std::min(entries, controller.value()), search / (search + other)));
    }
  }
  std::vector<double> limits;
  for (const double one : per_entry) limits.push_back(other / one);
  std::sort(limits.begin(), limits.end());
  CHECK(static_cast<double>(controller.value()) == Approx(limits[2]).margin(100));
}

TEST_CASE("split limit: is changed only when it is far off, for long, and the rails allow it") {
  HandClock clock;
  GuardRails rails({}, clock);
  SplitLimitController controller({}, ControlMode::On, 64LL << 20, rails);
  const ClusterSize fits{900.0 * 0.7 * 64 * (1 << 20), 3, 1};  // This is 300 buckets per node.
  const ClusterSize large{fits.bytes * 8, 3, 1};
  for (int i = 0; i < 10; ++i) CHECK_FALSE(controller.step(fits, {}).is_change);
  CHECK_FALSE(controller.step(large, {}).is_change);
  CHECK_FALSE(controller.step(large, {}).is_change);
  ClusterCondition degraded;
  degraded.is_degraded = true;
  CHECK_FALSE(controller.step(large, degraded).is_change);
  CHECK(controller.step(large, {}).new_value == 512LL << 20);
  // The controller goes back only after the pause.
  for (int i = 0; i < 5; ++i) CHECK_FALSE(controller.step(fits, {}).is_change);
  clock.advance(7 * kHour);
  CHECK(controller.step(fits, {}).new_value == 64LL << 20);
}

TEST_CASE("split limit: never goes back and forth within its pause in ten thousand hours") {
  HandClock clock;
  GuardOptions options;
  GuardRails rails(options, clock);
  SplitLimitController controller({}, ControlMode::On, 64LL << 20, rails);
  Random random(11);
  double bytes = 3e12;
  std::int64_t changes = 0;
  std::int64_t opposite = 0;
  int last_direction = 0;
  MonotonicTime last_at;
  for (int hour = 0; hour < 10'000; ++hour) {
    clock.advance(kHour);
    // The data grows over the years, swings with the day, and jumps occasionally.
    bytes *= 1 + 0.02 * (2 * random.uniform() - 1) + 0.0003;
    const double day = 1 + 0.6 * std::sin(hour / 24.0 * 6.283);
    const double jump = random.chance(0.02) ? std::exp2(6 * random.uniform() - 3) : 1;
    ClusterCondition condition;
    condition.is_degraded = random.chance(0.05);
    const ControlDecision decision = controller.step({bytes * day * jump, 10, 2}, condition);
    if (!decision.is_applied) continue;
    ++changes;
    CHECK_FALSE(condition.is_degraded);
    const int direction = decision.new_value > decision.old_value ? 1 : -1;
    if (direction == -last_direction && clock.now() - last_at < options.structural_pause) ++opposite;
    last_direction = direction;
    last_at = clock.now();
  }
  CHECK(opposite == 0);
  CHECK(changes > 0);
  CHECK(changes < 100);
}

TEST_CASE("cache: memory goes where misses cost more, in steps, and stays when both cost alike") {
  CacheOptions options;
  options.budget_bytes = 16e9;
  CacheController controller(options, ControlMode::On, 2'000'000'000);
  // The cost of misses falls as a cache grows.
  const auto misses = [](double index) {
    const double pages = 16e9 - index;
    return CacheMisses{std::max(0.0, 1 - index / 8e9) * 10, std::max(0.0, 1 - pages / 40e9) * 6, 8e9};
  };
  int changes = 0;
  int turns = 0;
  bool was_up = true;
  for (int i = 0; i < 400; ++i) {
    const ControlDecision decision = controller.step(misses(static_cast<double>(controller.value())));
    if (!decision.is_change) continue;
    ++changes;
    const bool is_up = decision.new_value > decision.old_value;
    if (is_up != was_up) ++turns;
    was_up = is_up;
  }
  const CacheMisses end = misses(static_cast<double>(controller.value()));
  CHECK(end.index_miss_s < 1.5 * end.document_miss_s);
  CHECK(end.document_miss_s < 1.5 * end.index_miss_s);
  CHECK(changes >= 2);
  CHECK(turns == 0);
}

TEST_CASE("cache: keeps to its budget and to what indexes can use") {
  CacheOptions options;
  options.budget_bytes = 1e9;
  CacheController controller(options, ControlMode::On, 100'000'000);
  for (int i = 0; i < 200; ++i) static_cast<void>(controller.step({10, 0, 5e9}));
  CHECK(controller.value() == 600'000'000);
  for (int i = 0; i < 200; ++i) static_cast<void>(controller.step({0, 10, 5e9}));
  CHECK(controller.value() == 50'000'000);
  for (int i = 0; i < 200; ++i) static_cast<void>(controller.step({10, 0, 2e8}));
  CHECK(controller.value() == 220'000'000);
}

}  // namespace fjord::tuner
