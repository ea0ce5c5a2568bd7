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

/// Those that the constants of the cost model and the formulas were fitted on.
std::vector<Scenario> fitting_scenarios(int count = 64);
/// Others, drawn from the same ranges by another seed.
std::vector<Scenario> held_out_scenarios();
/// As many as one likes, by any seed.
std::vector<Scenario> draw_scenarios(std::uint64_t seed, int count);

/// How the advice for one scenario compares with everything on the grid, on the simulated machine.
struct GridRow {
  Scenario scenario;
  Settings advised;
  Settings best;
  double best_objective = 0;  ///< Of the grid, the defaults and the advice.
  Outcome advised_outcome;
  Outcome default_outcome;
  Prediction predicted;  ///< Of the advice.
  std::size_t settings_tried = 0;

  double of_best() const { return advised_outcome.objective / best_objective; }
  double of_default() const { return advised_outcome.objective / default_outcome.objective; }
  double throughput_error() const;
  double latency_error() const;
};

/// Four levels each of file_bytes_max, held_bytes_max, index_bytes_max, visitors_max and bucket_bytes_max, and
/// `docblock_levels` of docblock_bytes: with 4 all 4,096 settings, with 1 the default alone, with 0 no grid at all.
GridRow run_grid(const Scenario& scenario, std::uint64_t seed, int docblock_levels, int operations);

struct GridSummary {
  double median_of_best = 0;
  double worst_of_best = 0;
  double worst_of_default = 0;
  double mean_gain = 0;      ///< Geometric, over the defaults.
  double mean_gain_low = 0;  ///< 95 % interval.
  double mean_gain_high = 0;
  double median_throughput_error = 0;
  double median_latency_error = 0;
};
GridSummary summary_of(const std::vector<GridRow>& rows);

/// A Markdown table, one line a scenario.
std::string grid_table(const std::vector<GridRow>& rows);

}  // namespace fjord::tuner::model
