#include "fjord/common/yield_controller.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/tuner/model/plant.h"

namespace fjord {
namespace {

namespace model = tuner::model;

YieldOptions yield_options() {
  YieldOptions options;
  options.target_s = 0.02;
  options.floor = 10;
  options.ceiling = 1000;
  options.start = 250;  // 250 permille: a quarter.
  options.unit = 10;
  return options;
}

model::PlantOptions drawn_machine(Random& random) {
  model::PlantOptions options;
  options.capacity = 600 + 900 * random.uniform();
  options.base_s = 0.4e-3 + 1.2e-3 * random.uniform();
  return options;
}

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
  const ControlDecision decision = advise.step(1.0, true);
  CHECK(decision.is_change);
  CHECK_FALSE(decision.is_applied);
  CHECK(decision.new_value == 31);
  CHECK(advise.value() == 250);
}

TEST_CASE("yield: a load that triples is back under its target in ten periods, on machines of all kinds") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const model::PlantOptions plant_options = drawn_machine(random);
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
    const model::PlantOptions plant_options = drawn_machine(random);
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

}  // namespace
}  // namespace fjord
