// Compares the balancing algorithms on simulated loads, and plans for a large cluster. The tables go to standard
// output.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>

#include "fjord/balancer/simulator.h"
#include "fjord/common/clock.h"

namespace fjord::balancer {
namespace {

/// The results of one algorithm on one trace: means over the seeds.
struct Row {
  double mean = 0.0;
  double p50 = 0.0;
  double p95 = 0.0;
  double rounds = 0.0;
  double moves = 0.0;
  double bytes = 0.0;
  double bytes_max = 0.0;
  double rows = 0.0;
  double topic_cost = 0.0;
  double planning_ms = 0.0;
};

struct Options {
  std::uint64_t seeds = 3;
  bool quick = false;
  bool large = false;  ///< Run the experiment with 1,000 nodes instead.
};

class Experiment {
 public:
  explicit Experiment(const Options& options) : options_(options) {
    if (!options.quick) return;
    simulation_.trace.nodes = 10;
    simulation_.trace.buckets = 4096;
    simulation_.trace.operations = 300'000;
    simulation_.rounds = 100;
  }

  void run() {
    if (options_.large) {
      run_large();
      return;
    }
    for (const std::string_view trace : trace_names()) table(trace, algorithms());
    summary();
    plan_large(options_.quick ? 100 : 1000);
  }

 private:
  Row measure(const BalancingAlgorithm* algorithm, std::string_view trace_name) const {
    Row row;
    for (std::uint64_t seed = 1; seed <= options_.seeds; ++seed) {
      SimulationOptions options = simulation_;
      options.trace.seed = seed;
      const auto trace = make_trace(trace_name, options.trace);
      const SimulationResult result = simulate(algorithm, *trace, options, clock_);
      const auto part = 1.0 / static_cast<double>(options_.seeds);
      row.mean += part * result.mean;
      row.p50 += part * result.p50;
      row.p95 += part * result.p95;
      row.rounds +=
          part * static_cast<double>(result.rounds_to_balance.value_or(options.rounds - trace->event_round()));
      row.moves += part * result.moves_per_round;
      row.bytes += part * result.bytes_part_mean;
      row.bytes_max = std::max(row.bytes_max, result.bytes_part_max);
      row.rows += part * static_cast<double>(result.rows);
      row.topic_cost += part * result.topic_cost;
      row.planning_ms = std::max(row.planning_ms, static_cast<double>(result.planning_max.count()) / 1e3);
    }
    return row;
  }

  void table(std::string_view trace, const std::vector<const BalancingAlgorithm*>& compared) {
    fmt::print("\n### {}{}\n\n", trace,
               simulation_.trace.nodes > 20 ? fmt::format(", {} nodes", simulation_.trace.nodes) : "");
    fmt::print(
        "| algorithm | mean | p50 | p95 | rounds to 1.15 | moves a round | bytes a round | most bytes | rows | topics "
        "| plan ms |\n");
    fmt::print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    print_row("(no balancer)", measure(nullptr, trace));
    for (const BalancingAlgorithm* algorithm : compared) {
      const Row row = measure(algorithm, trace);
      p95_[std::string(trace)][std::string(algorithm->name())] = row.p95;
      print_row(algorithm->name(), row);
    }
    std::fflush(stdout);
  }

  static void print_row(std::string_view name, const Row& row) {
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} | {:.0f} | {:.1f} | {:.2f} % | {:.2f} % | {:.0f} | {:.2f} | {:.1f} |\n",
               name, row.mean, row.p50, row.p95, row.rounds, row.moves, 100.0 * row.bytes, 100.0 * row.bytes_max,
               row.rows, row.topic_cost, row.planning_ms);
  }

  /// Prints, for each trace, the default algorithm beside the best one.
  void summary() const {
    const std::string name(algorithms().front()->name());
    fmt::print(
        "\n### The default beside the best\n\n| trace | {} p95 | best p95 | of | ratio |\n|---|---:|---:|---|---:|\n",
        name);
    for (const auto& [trace, results] : p95_) {
      const auto best = std::min_element(results.begin(), results.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      fmt::print("| {} | {:.3f} | {:.3f} | {} | {:.3f} |\n", trace, results.at(name), best->second, best->first,
                 results.at(name) / best->second);
    }
  }

  /// Compares the default algorithm and that of [KBD 2020] with 1,000 nodes, each as loaded as with 20, for one seed.
  void run_large() {
    simulation_.trace.nodes = 1000;
    simulation_.trace.buckets = 131'072;
    simulation_.trace.operations = 30'000'000;
    simulation_.rounds = 120;
    options_.seeds = 1;
    for (const std::string_view trace : {"moving-hotspot", "flash", "step"}) {
      table(trace, {algorithms().front(), find_algorithm("weighted-move")});
    }
  }

  /// Plans one step for `nodes` nodes, with 1,000 buckets and 100 slices for each node and lognormal loads.
  void plan_large(std::uint32_t nodes) const {
    BalanceModel model;
    const std::uint32_t slices = 100 * nodes;
    const std::uint32_t buckets = 1000 * nodes;
    model.redundancy = 1;
    for (std::uint32_t node = 0; node < nodes; ++node) model.nodes.push_back({.group = node});
    Random random(7);
    for (std::uint32_t i = 0; i < slices; ++i) {
      Slice slice;
      slice.range = {i * (buckets / slices), (i + 1) * (buckets / slices)};
      slice.reads = 300.0 * std::exp(0.8 * draw_normal(random));
      slice.bytes = static_cast<std::uint64_t>(1e7 * std::exp(0.5 * draw_normal(random)));
      slice.holders.push_back({static_cast<std::uint16_t>(random.below(nodes)), 1.0});
      model.slices.push_back(slice);
    }
    model.step_bytes_max = model.bytes() / 100;
    const BalancingAlgorithm& algorithm = *algorithms().front();
    Memory memory;
    const MonotonicTime start = clock_.now();
    const Plan plan = algorithm.step(model, memory, random);
    const Duration took = clock_.now() - start;
    const Status status = check(plan, model);
    FJORD_CHECK(status.is_ok());
    fmt::print("\n### A plan for {} nodes\n\n", nodes);
    fmt::print("{} buckets in {} slices: {} took {:.0f} ms for {} moves, imbalance {:.3f} to {:.3f}.\n", buckets,
               slices, algorithm.name(), static_cast<double>(took.count()) / 1e3, plan.moves.size(),
               plan.imbalance_before, plan.imbalance_after);
  }

  Options options_;
  SimulationOptions simulation_;
  SystemClock clock_;
  std::map<std::string, std::map<std::string, double>> p95_;
};

}  // namespace
}  // namespace fjord::balancer

int main(int argc, char** argv) {
  CLI::App app("Compares balancing algorithms on simulated loads.");
  fjord::balancer::Options options;
  std::string directory;
  app.add_option("--seeds", options.seeds, "seeds over which figures are means")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "one seed, 10 nodes, 100 rounds");
  app.add_flag("--large", options.large, "1,000 nodes, three traces and two algorithms instead");
  app.add_option("--directory", directory, "not used; every experiment is given one");
  CLI11_PARSE(app, argc, argv);
  if (options.quick) options.seeds = 1;
  fjord::balancer::Experiment(options).run();
  return 0;
}
