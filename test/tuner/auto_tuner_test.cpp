#include "fjord/tuner/auto_tuner.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "fjord/common/random.h"
#include "fjord/tuner/model/plant.h"
#include "flight.h"

namespace fjord::tuner {

TEST_CASE("auto-tuner: what is off says nothing, what advises says it once and changes nothing") {
  Flight off{AutoTunerOptions()};
  off.steps(20, busy(1));
  CHECK(off.notes.empty());
  CHECK(off.orders.empty());
  Flight advises{only("visitors", ControlMode::Advise)};
  advises.steps(20, busy(1));
  CHECK(advises.orders.empty());
  REQUIRE(advises.notes.size() == 1);
  CHECK(advises.notes[0].kind == AutoTunerNote::Kind::Advice);
  CHECK(advises.notes[0].knob->name == kVisitorsMax);
  CHECK(advises.notes[0].old_value == 8);
  CHECK(advises.notes[0].new_value == 1);
  CHECK(advises.notes[0].text.find("p99") != std::string::npos);
}

TEST_CASE("auto-tuner: visitors are fewer while the target is broken, and more while it is kept and some wait") {
  Flight flight{only("visitors", ControlMode::On)};
  flight.steps(3, busy(0.005));
  CHECK(flight.orders.empty() == false);
  CHECK(flight.orders[0].new_value == 9);
  flight.steps(6, busy(1));
  CHECK(flight.values[kVisitorsMax] == 1);
  flight.steps(60, busy(0.005));
  CHECK(flight.values[kVisitorsMax] > 4);
  AutoTunerInput nobody_waits = busy(0.005);
  nobody_waits.figures.visitors_queued = 0;
  const std::int64_t before = flight.values[kVisitorsMax];
  flight.steps(20, nobody_waits);
  CHECK(flight.values[kVisitorsMax] == before);
}

TEST_CASE("auto-tuner: nothing while the cluster is degraded or under maintenance, and it says so once") {
  for (const bool degraded : {true, false}) {
    AutoTunerInput input = busy(1);
    input.condition.is_degraded = degraded;
    input.condition.is_under_maintenance = !degraded;
    Flight flight{only("visitors", ControlMode::On)};
    flight.steps(20, input);
    CHECK(flight.orders.empty());
    CHECK(flight.noted(AutoTunerNote::Kind::Held, degraded ? "degraded" : "maintenance"));
    CHECK(flight.notes.size() <= 2);
    flight.steps(1, busy(1));
    CHECK(flight.orders.size() == 1);
  }
}

TEST_CASE("auto-tuner: what somebody else sets is taken over and left alone for a time") {
  AutoTunerOptions options = only("visitors", ControlMode::On);
  options.hold_periods = 10;
  Flight flight{options};
  flight.steps(4, busy(1));
  REQUIRE(flight.values[kVisitorsMax] == 1);
  flight.values[kVisitorsMax] = 20;
  const std::size_t orders = flight.orders.size();
  flight.steps(10, busy(1));
  CHECK(flight.values[kVisitorsMax] == 20);
  CHECK(flight.orders.size() == orders);
  CHECK(flight.noted(AutoTunerNote::Kind::Adopted, "another client"));
  CHECK_FALSE(flight.tuner.is_watching());
  flight.steps(1, busy(1));
  REQUIRE(flight.orders.size() == orders + 1);
  CHECK(flight.orders.back().old_value == 20);  // The loop starts from the operator's value, not from its own.
}

TEST_CASE(
    "auto-tuner: a change of bucket sizes that is bad is taken back, with the id of the change, and not made again") {
  AutoTunerOptions options = only("split", ControlMode::On);
  Flight flight{options};
  AutoTunerInput input = busy(0.005);
  input.size = {1e12, 10, 2};  // The data needs 1,500 buckets of at most 952 MB.
  flight.steps(5, input);
  REQUIRE(flight.orders.size() == 1);
  CHECK(flight.values[kSplitLimit] == 1LL << 30);
  CHECK(flight.tuner.is_watching());
  AutoTunerInput worse = input;
  worse.figures.mean_s = 0.003;
  flight.steps(2, worse);
  CHECK(flight.orders.size() == 1);
  flight.steps(1, worse);
  REQUIRE(flight.orders.size() == 2);
  CHECK(flight.orders[1].reverts == std::vector<std::string>{"tune-1"});
  CHECK(flight.orders[1].reason.find("0.67") != std::string::npos);
  CHECK(flight.values[kSplitLimit] == 64 << 20);
  flight.steps(29, input);
  CHECK(flight.orders.size() == 2);
}

TEST_CASE("auto-tuner: a change that is taken back is not, if somebody has set the knob meanwhile") {
  Flight flight{only("split", ControlMode::On)};
  AutoTunerInput input = busy(0.005);
  input.size = {1e12, 10, 2};
  flight.steps(5, input);
  REQUIRE(flight.orders.size() == 1);
  flight.values[kSplitLimit] = 512 << 20;
  flight.steps(10, busy(0.005, 0.01));
  CHECK(flight.orders.size() == 1);
  CHECK(flight.values[kSplitLimit] == 512 << 20);
}

TEST_CASE("auto-tuner: a roll-back that failed is ordered again, until somebody else has set the knob") {
  HandClock clock;
  AutoTuner tuner(only("split", ControlMode::On), clock);
  AutoTunerInput input = busy(0.005);
  input.size = {1e12, 10, 2};
  std::optional<SettingChange> order;
  for (int i = 0; i < 5 && !order; ++i) order = tuner.step(input).order;
  REQUIRE(order);
  tuner.made(*order, "tune-1");
  input.values[kSplitLimit] = order->new_value;
  input.figures.mean_s = 0.01;
  for (int i = 0; i < 2; ++i) CHECK_FALSE(tuner.step(input).order);
  for (int i = 0; i < 5; ++i) {
    const AutoTunerStep step = tuner.step(input);
    REQUIRE(step.order);
    CHECK(step.order->new_value == 64 << 20);
    tuner.failed(*step.order);
  }
  input.values[kSplitLimit] = 32 << 20;
  for (int i = 0; i < 5; ++i) CHECK_FALSE(tuner.step(input).order);
}

TEST_CASE("auto-tuner: one change at a time, but visitors give way even while another change is being watched") {
  AutoTunerOptions options;
  options.modes = {{"visitors", ControlMode::On}, {"split", ControlMode::On}};
  options.periods_before = 1;
  Flight flight{options};
  AutoTunerInput input = busy(0.005);
  input.figures.visitors_queued = 0;
  input.size = {1e12, 10, 2};
  flight.steps(4, input);
  REQUIRE(flight.orders.size() == 1);
  CHECK(flight.orders[0].loop == "split");
  input.figures.visitors_queued = 1;
  flight.steps(2, input);
  CHECK(flight.orders.size() == 1);
  CHECK(flight.noted(AutoTunerNote::Kind::Held, "another change is being watched"));
  AutoTunerInput breach = input;
  breach.figures.p99_s = 0.05;
  flight.steps(3, breach);
  CHECK(flight.orders[1].loop == "visitors");
  CHECK(flight.orders[1].new_value < 8);
  // The last change may be the cause, so it is still rolled back.
  CHECK(flight.orders.back().loop == "split");
  CHECK(flight.orders.back().reverts.size() == 1);
}

TEST_CASE("auto-tuner: maintenance keeps to the minimum that is set") {
  Flight flight{only("maintenance", ControlMode::On)};
  AutoTunerInput input = busy(1);
  input.values["maintenance.bytes_per_s_min"] = 50 << 20;
  flight.steps(20, input);
  CHECK(flight.values["maintenance.bytes_per_s"] == 50 << 20);
}

TEST_CASE("auto-tuner: a knob that nobody knows the value of is not turned, and that is said once") {
  Flight flight{only("visitors", ControlMode::On)};
  AutoTunerInput input = busy(1);
  input.values.erase(kVisitorsMax);
  flight.steps(10, input);
  CHECK(flight.orders.empty());
  CHECK(flight.notes.size() == 1);
  CHECK(flight.noted(AutoTunerNote::Kind::Idle));
}

namespace {

/// Nodes that differ, drift, and sometimes become slower or are replaced, and users whose load varies.
class SimulatedCluster {
 public:
  /// `unrest`: factor by which all variation is stronger than normal.
  SimulatedCluster(std::uint64_t seed, double unrest) : random_(seed), unrest_(unrest) {
    const auto count = 3 + random_.below(7);
    for (std::uint64_t i = 0; i < count; ++i) add_node(seed * 100 + i);
  }

  /// The effect of a change on the nodes.
  struct Harm {
    double speed = 1;
    double background = 0;  ///< Load by background work, as a share of the capacity.
    double failed_share = 0;
  };

  AutoTunerInput period(const Harm& harm, std::int64_t visitors) {
    if (random_.uniform() < 0.08 * unrest_) {
      Node& changed = nodes_[random_.below(nodes_.size())];
      changed.speed = 0.8 + 0.4 * random_.uniform();
    }
    demand_ = std::clamp(demand_ * (1 + 0.04 * unrest_ * (random_.uniform() - 0.5)), 0.25, 0.5);
    AutoTunerInput input = busy(0, 0);
    double mean = 0;
    for (Node& node : nodes_) {
      node.plant.set_speed(node.speed * harm.speed);
      const double background = (harm.background + 0.004 * static_cast<double>(visitors)) * node.capacity;
      input.figures.p99_s = std::max(*input.figures.p99_s, node.plant.step(demand_ * node.capacity, background));
      mean += node.plant.mean_s() / static_cast<double>(nodes_.size());
    }
    input.figures.mean_s = mean * (1 + 0.02 * (random_.uniform() - 0.5));
    const double asked = demand_ * 1000 * static_cast<double>(nodes_.size());
    input.figures.reads_per_s = asked * (1 - harm.failed_share);
    input.figures.writes_per_s = 0;
    input.figures.failed_per_s = asked * harm.failed_share;
    input.figures.operations = 10 * asked;
    input.figures.visitors_running = static_cast<double>(visitors);
    input.figures.scan_bytes_per_s = 20e6 * harm.speed * static_cast<double>(visitors);
    input.values[std::string(bad_knob().name)] = bad_value;
    return input;
  }

  Harm draw_harm() {
    Harm harm;
    switch (random_.below(3)) {
      case 0:
        harm.speed = 0.3 + 0.45 * random_.uniform();
        break;
      case 1:
        harm.background = 0.2 + 0.6 * random_.uniform();
        break;
      default:
        harm.failed_share = 0.2 + 0.7 * random_.uniform();
    }
    return harm;
  }

  static const Knob& bad_knob() { return *find_knob("storage.held_bytes_max"); }
  std::int64_t bad_value = 64 << 20;

 private:
  struct Node {
    model::Plant plant;
    double capacity;
    double speed;
  };
  void add_node(std::uint64_t seed) {
    model::PlantOptions options;
    options.capacity = 600 + 1800 * random_.uniform();
    options.base_s = 0.4e-3 + 1.2e-3 * random_.uniform();
    options.drift = 0.01 * unrest_;
    nodes_.push_back({model::Plant(options, seed), options.capacity, 1});
  }

  Random random_;
  const double unrest_;
  std::vector<Node> nodes_;
  double demand_ = 0.35;
};

bool takes_back_injected(const std::optional<SettingChange>& order) {
  return order && order->reverts == std::vector<std::string>{"tune-injected"};
}

/// Runs an auto-tuner whose visitors loop is on.
struct SimulatedFlight {
  explicit SimulatedFlight(std::uint64_t seed, double unrest = 1)
      : cluster(seed, unrest), flight(only("visitors", ControlMode::On)) {}
  std::optional<SettingChange> period(const SimulatedCluster::Harm& harm) {
    const std::int64_t visitors = flight.values.contains(kVisitorsMax) ? flight.values[kVisitorsMax] : 8;
    return flight.step(cluster.period(harm, visitors)).order;
  }
  /// Runs until a change can be judged.
  void settle() {
    for (int i = 0; i < 40 || flight.tuner.is_watching() || flight.tuner.watch().periods_before() < 3; ++i) {
      CHECK_FALSE(takes_back_injected(period({})));
    }
  }
  /// Injects a change that the auto-tuner has to watch, as if it had been ordered.
  void inject() {
    const std::int64_t old = std::exchange(cluster.bad_value, 1 << 20);
    flight.values.erase(std::string(SimulatedCluster::bad_knob().name));
    flight.tuner.made({"", &SimulatedCluster::bad_knob(), old, cluster.bad_value, "injected", {}}, "tune-injected");
  }

  SimulatedCluster cluster;
  Flight flight;
};

}  // namespace

TEST_CASE("auto-tuner: bad advice is taken back within three periods, every time, on nodes that differ and change") {
  int trials = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    SimulatedFlight sim(seed);
    for (int round = 0; round < 4; ++round) {
      sim.settle();
      const SimulatedCluster::Harm harm = sim.cluster.draw_harm();
      CAPTURE(round, harm.speed, harm.background, harm.failed_share);
      sim.inject();
      int periods = 1;
      while (!takes_back_injected(sim.period(harm)) && periods < 20) ++periods;
      CHECK(periods <= 3);
      sim.cluster.bad_value = 64 << 20;
      sim.flight.values.erase(std::string(SimulatedCluster::bad_knob().name));
      ++trials;
    }
  }
  CHECK(trials >= 200);
}

namespace {

/// Returns how many of `trials` changes without effect are rolled back.
int taken_back_of(int trials, double unrest) {
  int taken_back = 0;
  for (int seed = 1; seed <= trials; ++seed) {
    SimulatedFlight sim(static_cast<std::uint64_t>(seed), unrest);
    sim.settle();
    sim.inject();
    for (int i = 0; i < 12; ++i) taken_back += takes_back_injected(sim.period({})) ? 1 : 0;
  }
  return taken_back;
}

}  // namespace

TEST_CASE("auto-tuner: what changes nothing is seldom taken back") {
  const int little = taken_back_of(200, 0.1);
  const int much = taken_back_of(200, 1);
  INFO(little << " and " << much << " of 200");
  CHECK(little <= 10);
  CHECK(much <= 50);
}

}  // namespace fjord::tuner
