#include <catch2/catch.hpp>
#include <iostream>

#include "fjord/tuner/model/grid.h"

namespace fjord::tuner::model {

TEST_CASE("grid: on held-out workloads the advice is about as good as the best of 1,024 settings") {
  std::vector<GridRow> rows;
  for (const Scenario& scenario : held_out_scenarios()) rows.push_back(run_grid(scenario, 7, 1, 400));
  std::cout << grid_table(rows);
  const GridSummary summary = summary_of(rows);
  std::cout << "of the best: median " << summary.median_of_best << ", worst " << summary.worst_of_best
            << "; of the defaults: worst " << summary.worst_of_default << ", mean " << summary.mean_gain << "\n";
  CHECK(summary.median_of_best >= 0.95);
  CHECK(summary.worst_of_default >= 0.97);
}

}  // namespace fjord::tuner::model
