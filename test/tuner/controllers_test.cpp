#include "fjord/tuner/controllers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/tuner/model/plant.h"
#include "hand_clock.h"

namespace fjord::tuner {
namespace {

constexpr Duration kHour = seconds(3600);

YieldOptions yield_options() {
  YieldOptions options;
  options.target_s = 0.02;
  options.floor = 10;
  options.ceiling = 1000;
  options.start = 250;  // 250 permille: a quarter.
  options.unit = 10;
  return options;
}

}  // namespace

TEST_CASE("yield: grows by a unit while the foreground is well, halves on a breach, and keeps to its bounds") {
  YieldController controller(yield_options(), ControlMode::On);
  CHECK(controller.step(0.005, true).new_value == 260);
  CHECK(controller.step(0.02, true).is_change == false);  // 0.02 is within the dead band.
  CHECK(controller.step(0.021, true).is_change == false);
  CHECK(controller.step(0.005, false).is_change == false);  // No work waits, so there is no need for more.
  CHECK(controller.step(0.03, true).new_value == 130);
  for (int i = 0; i < 10; ++i) static_cast<void>(controller.step(1.0, true));
  CHECK(controller.value() == 10);
  for (int i = 0; i < 500; ++i) static_cast<void>(controller.step(std::nullopt, true));
  CHECK(controller.value() == 1000);
}

TEST_CASE("yield: off says nothing, advise says it and stays") {
  YieldController off(yield_options(), ControlMode::Off);
  CHECK_FALSE(off.step(1.0, true).is_change);
  YieldController advise(yield_options(), ControlMode::Advise);
  // The wait is fifty times the target: the value is halved three times.
  const Decision decision = advise.step(1.0, true);
  CHECK(decision.is_change);
  CHECK_FALSE(decision.is_applied);
  CHECK(decision.new_value == 31);
  CHECK(advise.value() == 250);
}

TEST_CASE("yield: a load that triples is back under its target in ten periods, on machines of all kinds") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    model::PlantOptions plant_options;
    plant_options.capacity = 600 + 900 * random.uniform();
    plant_options.base_s = 0.4e-3 + 1.2e-3 * random.uniform();
    model::Plant plant(plant_options, seed);
    YieldController controller(yield_options(), ControlMode::On);
    const double before = 0.2 * plant_options.capacity;
    for (int i = 0; i < 200; ++i) {
      static_cast<void>(controller.step(plant.step(before, static_cast<double>(controller.value())), true));
    }
    int over_target = 0;
    int far_over = 0;
    for (int period = 1; period <= 40; ++period) {
      const double p99 = plant.step(3 * before, static_cast<double>(controller.value()));
      if (p99 > 1.1 * 0.02) over_target = period;
      if (p99 > 1.5 * 0.02) ++far_over;
      static_cast<void>(controller.step(p99, true));
    }
    CHECK(over_target <= 10);
    CHECK(far_over <= 3);
  }
}

TEST_CASE("yield: settles without swinging, and uses most of what the foreground leaves") {
  double worst_use = 1;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    model::PlantOptions plant_options;
    plant_options.capacity = 600 + 900 * random.uniform();
    plant_options.base_s = 0.4e-3 + 1.2e-3 * random.uniform();
    model::Plant plant(plant_options, seed);
    YieldOptions options = yield_options();
    options.retry_periods = 400;
    YieldController controller(options, ControlMode::On);
    const double foreground = (0.2 + 0.3 * random.uniform()) * plant_options.capacity;
    std::vector<double> values;
    for (int i = 0; i < 400; ++i) {
      static_cast<void>(controller.step(plant.step(foreground, static_cast<double>(controller.value())), true));
      if (i >= 200) values.push_back(static_cast<double>(controller.value()));
    }
    double sum = 0;
    for (const double value : values) sum += value;
    const double mean = sum / static_cast<double>(values.size());
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    CHECK(*most <= 1.1 * mean);
    CHECK(*least >= 0.9 * mean);
    const double possible = std::min(plant.leftover(foreground, options.target_s), 1000.0);
    CHECK(mean >= 0.8 * possible);
    worst_use = std::min(worst_use, mean / possible);
  }
  CHECK(worst_use > 0.8);
}

TEST_CASE("yield: follows a machine whose capacity wanders, and a load that comes and goes") {
  model::PlantOptions plant_options;
  plant_options.drift = 0.01;
  model::Plant plant(plant_options, 3);
  YieldController controller(yield_options(), ControlMode::On);
  int breaches = 0;
  double used = 0;
  double possible = 0;
  constexpr int kPeriods = 5000;
  for (int i = 0; i < kPeriods; ++i) {
    const double foreground = 150 + 100 * std::sin(i / 200.0);
    possible += std::min(1000.0, plant.leftover(foreground, 0.02));
    used += static_cast<double>(controller.value());
    const double p99 = plant.step(foreground, static_cast<double>(controller.value()));
    if (p99 > 1.5 * 0.02) ++breaches;
    static_cast<void>(controller.step(p99, true));
  }
  CHECK(used > 0.75 * possible);
  CHECK(breaches < kPeriods / 20);
}

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
    const Decision decision = controller.step({bytes * day * jump, 10, 2}, condition);
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
    const Decision decision = controller.step(misses(static_cast<double>(controller.value())));
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
