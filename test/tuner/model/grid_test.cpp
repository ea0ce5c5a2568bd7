#include "fjord/tuner/model/grid.h"

#include <catch2/catch.hpp>
#include <iostream>

namespace fjord::tuner::model {

TEST_CASE("store model: equal arguments give an equal outcome, another seed a similar one") {
  const Scenario scenario = fitting_scenarios(3)[2];
  const Outcome a = simulate(scenario.workload, scenario.hardware, Settings(), 5);
  const Outcome b = simulate(scenario.workload, scenario.hardware, Settings(), 5);
  const Outcome c = simulate(scenario.workload, scenario.hardware, Settings(), 6);
  CHECK(a.operations_per_s == b.operations_per_s);
  CHECK(a.p99_s == b.p99_s);
  CHECK(a.operations_per_s != c.operations_per_s);
  CHECK(a.operations_per_s == Approx(c.operations_per_s).epsilon(0.25));
}

TEST_CASE("store model: behaves as machines do") {
  Scenario scenario;
  scenario.workload.documents = 2e7;
  scenario.workload.memory_bytes = 3.0 * (1ULL << 30);
  scenario.workload.scan_share = 0.2;
  const auto outcome = [&](const SimulatedHardware& hardware, const Settings& settings) {
    return simulate(scenario.workload, hardware, settings, 5, 3000);
  };
  const SimulatedHardware ssd;
  SimulatedHardware disk = ssd;
  disk.seek_s = 8e-3;
  disk.channels = 1;
  const Settings settings;
  const Outcome base = outcome(ssd, settings);
  CHECK(outcome(disk, settings).operations_per_s < 0.3 * base.operations_per_s);

  // Indexes that do not fit into memory are read repeatedly.
  Settings few_indexes = settings;
  few_indexes.index_bytes_max = 64 << 20;
  CHECK(outcome(ssd, few_indexes).index_hit < 0.5);
  CHECK(outcome(ssd, few_indexes).operations_per_s < 0.7 * base.operations_per_s);

  // More visitors read more, at the cost of the foreground.
  Settings many_visitors = settings;
  many_visitors.visitors_max = 20;
  Settings one_visitor = settings;
  one_visitor.visitors_max = 1;
  CHECK(outcome(ssd, many_visitors).scan_bytes_per_s > outcome(ssd, one_visitor).scan_bytes_per_s);
  CHECK(outcome(ssd, many_visitors).p99_s > outcome(ssd, one_visitor).p99_s);

  // These settings need more than the available memory.
  Settings greedy = settings;
  greedy.held_bytes_max = 8LL << 30;
  CHECK(outcome(ssd, greedy).operations_per_s < 0.5 * base.operations_per_s);

  // More memory gives more hits.
  const double hits = base.page_hit;
  scenario.workload.memory_bytes *= 4;
  CHECK(outcome(ssd, settings).page_hit > hits);
}

TEST_CASE("grid: no held-out workload is worse off with the advice than with the defaults") {
  std::vector<GridRow> rows;
  for (const Scenario& scenario : held_out_scenarios()) rows.push_back(run_grid(scenario, 7, 0, 500));
  REQUIRE(rows.size() >= 24);
  const GridSummary summary = summary_of(rows);
  CHECK(summary.worst_of_default >= 0.97);
  CHECK(summary.mean_gain_low > 1.5);
  CHECK(summary.median_throughput_error <= 0.20);
  CHECK(summary.median_latency_error <= 0.25);
}

}  // namespace fjord::tuner::model
