// The advice of the tuner against an exhaustive grid of settings, on simulated machines (tuner/model/README.md).

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fmt/format.h>

#include "fjord/tuner/advisor.h"
#include "fjord/tuner/model/grid.h"

namespace {

using namespace fjord::tuner;
using namespace fjord::tuner::model;

void print_line(const Scenario& scenario, const HardwareProfile& profile, const char* what, const Settings& settings) {
  const Outcome o = simulate(scenario.workload, scenario.hardware, settings, 7, 4000);
  const Prediction p = predict(scenario.workload, profile, settings);
  fmt::print(
      "{:<40} simulated {:>9.0f} op/s {:>8.1f} MB/s {:>8.2f} ms {:>10.3g}   predicted {:>9.0f} {:>8.1f} {:>8.2f} "
      "{:>10.3g} hits {:.2f} {:.2f} predicted {:.2f} {:.2f} {}\n",
      what, o.operations_per_s, o.scan_bytes_per_s / 1e6, o.p99_s * 1e3, o.objective, p.operations_per_s,
      p.scan_bytes_per_s / 1e6, p.p99_s * 1e3, p.objective, o.page_hit, o.index_hit, p.page_hit, p.index_hit,
      p.binding);
}

/// Prints the results of the defaults, of the advice, and of the advice with a single knob changed.
void print_scenario(const Scenario& scenario) {
  const HardwareProfile profile = probe(scenario.hardware, 7);
  const Report report = advise(scenario.workload, profile);
  fmt::print("{}; target {:.1f} ms, skew {:.2g}, redundancy {}\n", scenario.name,
             scenario.workload.latency_target_s * 1e3, scenario.workload.key_skew, scenario.workload.redundancy);
  print_line(scenario, profile, "defaults", scenario.workload.current);
  print_line(scenario, profile, "advice", report.after);
  for (const Knob& knob : knobs()) {
    for (const double factor : {0.25, 0.5, 2.0, 4.0}) {
      Settings settings = report.after;
      const double value = static_cast<double>(settings.*(knob.member)) * factor;
      settings.*(knob.member) =
          std::max<std::int64_t>(knob.min, std::min<std::int64_t>(knob.max, static_cast<std::int64_t>(value)));
      print_line(scenario, profile,
                 fmt::format("{} = {}", knob.name, value_text(knob, settings.*(knob.member))).c_str(), settings);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Compares the advice of the tuner with all settings of a grid, on simulated machines"};
  bool quick = false;
  bool fitting = false;
  std::string directory;
  app.add_flag("--quick", quick, "A quarter of the grid");
  app.add_flag("--fitting", fitting,
               "The workloads that the model was fitted on, in place of those that were held out");
  app.add_option("--directory", directory, "Unused: nothing is written");
  std::size_t one = 0;
  int count = 64;
  app.add_option("--count", count, "How many of those that the model was fitted on (default: 64)");
  std::uint64_t seed = 0;
  app.add_option("--seed", seed, "Other workloads, as many as --count says, drawn by this seed");
  bool without = false;
  app.add_flag("--no-grid", without, "Only the advice against the defaults");
  int operations = 600;
  app.add_option("--operations", operations, "Simulated for each of the settings (default: 600)");
  app.add_option("--scenario", one, "Only this one: what each knob alone changes, from the advice");
  CLI11_PARSE(app, argc, argv);
  const std::vector<Scenario> scenarios = seed != 0 ? draw_scenarios(seed, count)
                                          : fitting ? fitting_scenarios(count)
                                                    : held_out_scenarios();
  if (one > 0 && one <= scenarios.size()) {
    print_scenario(scenarios[one - 1]);
    return 0;
  }
  std::vector<GridRow> rows;
  std::size_t tried = 0;
  for (const Scenario& scenario : scenarios) {
    rows.push_back(run_grid(scenario, 7, without ? 0 : quick ? 1 : 4, operations));
    tried += rows.back().settings_tried;
  }
  const GridSummary s = summary_of(rows);
  fmt::print("{} workloads, {} settings tried.\n\n", rows.size(), tried);
  fmt::print("| what | figure | goal |\n|---|---:|---|\n");
  fmt::print("| advice, of the best of the grid: median | {:.3f} | at least 0.95 |\n", s.median_of_best);
  fmt::print("| the same: worst | {:.3f} | at least 0.85 |\n", s.worst_of_best);
  fmt::print("| advice, of the defaults: worst | {:.3f} | at least 0.97 |\n", s.worst_of_default);
  fmt::print("| the same: geometric mean, 95 % interval | {:.2f}, {:.2f} to {:.2f} | |\n", s.mean_gain, s.mean_gain_low,
             s.mean_gain_high);
  fmt::print("| prediction of operations/s: median error | {:.3f} | at most 0.15 |\n", s.median_throughput_error);
  fmt::print("| prediction of p99: median error | {:.3f} | at most 0.25 |\n\n", s.median_latency_error);
  fmt::print("{}", grid_table(rows));
  return 0;
}
