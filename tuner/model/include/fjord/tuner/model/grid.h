#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fjord/tuner/cost_model.h"
#include "fjord/tuner/model/store_model.h"

namespace fjord::tuner::model {

/// A workload and the machines that it runs on, drawn at random.
struct Scenario {
  std::string name;
  Workload workload;
  SimulatedHardware hardware;
};

/// Returns the scenarios on which the constants of the cost model and the formulas were fitted.
std::vector<Scenario> fitting_scenarios(int count = 64);
/// Returns scenarios for judging, drawn from the same ranges with another seed.
std::vector<Scenario> held_out_scenarios();
/// Draws `count` scenarios from `seed`.
std::vector<Scenario> draw_scenarios(std::uint64_t seed, int count);

/// Comparison of the advice for one scenario with all settings of the grid, on the simulated machine.
struct GridRow {
  Scenario scenario;
  Settings advised;
  Settings best;
  double best_objective = 0;  ///< Best objective among the grid, the defaults and the advice.
  Outcome advised_outcome;
  Outcome default_outcome;
  Prediction predicted;  ///< Prediction of the cost model for the advised settings.
  std::size_t settings_tried = 0;

  double of_best() const { return advised_outcome.objective / best_objective; }
  double of_default() const { return advised_outcome.objective / default_outcome.objective; }
  double throughput_error() const;
  double latency_error() const;
};

/// Simulates a scenario with the advice, the defaults and a grid of settings. The grid combines four values each of
/// file_bytes_max, held_bytes_max, index_bytes_max, visitors_max and bucket_bytes_max with `docblock_levels` values of
/// docblock_bytes: 4 gives all 4,096 settings, 1 only the default docblock, 0 no grid.
GridRow run_grid(const Scenario& scenario, std::uint64_t seed, int docblock_levels, int operations);

struct GridSummary {
  double median_of_best = 0;
  double worst_of_best = 0;
  double worst_of_default = 0;
  double mean_gain = 0;       ///< Geometric mean of the gain over the defaults.
  double mean_gain_low = 0;   ///< Lower bound of the 95 % confidence interval of mean_gain.
  double mean_gain_high = 0;  ///< Upper bound of the 95 % confidence interval of mean_gain.
  double median_throughput_error = 0;
  double median_latency_error = 0;
};
GridSummary summary_of(const std::vector<GridRow>& rows);

/// Returns a Markdown table with one line for each scenario.
std::string grid_table(const std::vector<GridRow>& rows);

}  // namespace fjord::tuner::model
