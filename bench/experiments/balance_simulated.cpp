// Compares the balancing algorithms on simulated loads, and plans for a large cluster. The tables go to standard
// output, CSV files to a folder.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>

#include "csv_file.h"
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
  double seconds = 0.0;  ///< Processor time of all seeds.
};

struct Options {
  std::uint64_t seeds = 3;
  std::uint64_t first_seed = 1;
  std::uint64_t rounds = 0;  ///< 0: 300, or 120 with 1,000 nodes.
  bool quick = false;
  bool large = false;    ///< Run the experiment with 1,000 nodes instead.
  bool designs = false;  ///< Run what was tried for the moving hot spot with 1,000 nodes instead.
  std::vector<std::string> traces;
  std::vector<std::string> algorithms;
  std::string output;

  std::string suffix() const { return designs ? "-designs" : large ? "-large" : ""; }
};

/// A trace with a number of replicas that is not its own.
class WithReplicas final : public Trace {
 public:
  WithReplicas(std::unique_ptr<Trace> trace, unsigned redundancy) : trace_(std::move(trace)), redundancy_(redundancy) {}
  unsigned redundancy() const override { return redundancy_ == 0 ? trace_->redundancy() : redundancy_; }
  double read_part() const override { return trace_->read_part(); }
  void fill(std::uint64_t round, std::span<double> operations) override { trace_->fill(round, operations); }
  void change_nodes(std::uint64_t round, std::vector<BalanceNode>& nodes) override {
    trace_->change_nodes(round, nodes);
  }
  std::uint64_t event_round() const override { return trace_->event_round(); }
  std::vector<Topic> topics() const override { return trace_->topics(); }

 private:
  std::unique_ptr<Trace> trace_;
  unsigned redundancy_;
};

template <typename T>
bool is_chosen(const std::vector<std::string>& chosen, const T& name) {
  return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
}

class Experiment {
 public:
  explicit Experiment(const Options& options)
      : options_(options),
        results_(
            options.output, "results" + options.suffix(),
            "nodes,variant,trace,algorithm,mean,p50,p95,rounds_to_balance,moves_per_round,bytes_part,bytes_part_max,"
            "rows,topic_cost,planning_ms,processor_seconds"),
        rounds_(options.output, "rounds" + options.suffix(), "nodes,variant,trace,algorithm,round,imbalance") {
    if (options.large || options.designs) {
      // Each node is as loaded as with 20 nodes.
      simulation_.trace.nodes = 1000;
      simulation_.trace.buckets = 131'072;
      simulation_.trace.operations = 30'000'000;
      simulation_.rounds = 120;
      options_.seeds = 1;
    } else if (options.quick) {
      simulation_.trace.nodes = 10;
      simulation_.trace.buckets = 4096;
      simulation_.trace.operations = 300'000;
      simulation_.rounds = 100;
    }
    if (options.rounds != 0) simulation_.rounds = options.rounds;
  }

  void run() {
    if (options_.designs) {
      run_designs();
      return;
    }
    for (const std::string_view trace : trace_names()) {
      if (is_chosen(options_.traces, trace)) table(trace, algorithms());
    }
    summary();
    if (!options_.large) plan_large(options_.quick ? 100 : 1000);
  }

 private:
  Row measure(const BalancingAlgorithm* algorithm, std::string_view trace_name) {
    Row row;
    const std::clock_t begin = std::clock();
    for (std::uint64_t seed = options_.first_seed; seed < options_.first_seed + options_.seeds; ++seed) {
      SimulationOptions options = simulation_;
      options.trace.seed = seed;
      WithReplicas trace(make_trace(trace_name, options.trace), redundancy_);
      const SimulationResult result = simulate(algorithm, trace, options, clock_);
      const auto part = 1.0 / static_cast<double>(options_.seeds);
      row.mean += part * result.mean;
      row.p50 += part * result.p50;
      row.p95 += part * result.p95;
      row.rounds += part * static_cast<double>(result.rounds_to_balance.value_or(options.rounds - trace.event_round()));
      row.moves += part * result.moves_per_round;
      row.bytes += part * result.bytes_part_mean;
      row.bytes_max = std::max(row.bytes_max, result.bytes_part_max);
      row.rows += part * static_cast<double>(result.rows);
      row.topic_cost += part * result.topic_cost;
      row.planning_ms = std::max(row.planning_ms, static_cast<double>(result.planning_max.count()) / 1e3);
      if (seed == options_.first_seed) add_rounds(algorithm, trace_name, result);
    }
    row.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    results_.add(fmt::format("{},{},{},{},{:.4f},{:.4f},{:.4f},{:.1f},{:.2f},{:.6f},{:.6f},{:.0f},{:.3f},{:.1f},{:.1f}",
                             simulation_.trace.nodes, variant_, trace_name, name_of(algorithm), row.mean, row.p50,
                             row.p95, row.rounds, row.moves, row.bytes, row.bytes_max, row.rows, row.topic_cost,
                             row.planning_ms, row.seconds));
    return row;
  }

  void add_rounds(const BalancingAlgorithm* algorithm, std::string_view trace, const SimulationResult& result) {
    for (const RoundFigures& round : result.rounds) {
      rounds_.add(fmt::format("{},{},{},{},{},{:.4f}", simulation_.trace.nodes, variant_, trace, name_of(algorithm),
                              round.round, round.imbalance));
    }
  }

  static std::string_view name_of(const BalancingAlgorithm* algorithm) {
    return algorithm == nullptr ? "(no balancer)" : algorithm->name();
  }

  void table(std::string_view trace, const std::vector<const BalancingAlgorithm*>& compared) {
    fmt::print("\n### {}{}\n\n", trace,
               simulation_.trace.nodes > 20 ? fmt::format(", {} nodes", simulation_.trace.nodes) : "");
    print_header("algorithm");
    print_row("(no balancer)", measure(nullptr, trace));
    for (const BalancingAlgorithm* algorithm : compared) {
      if (!is_chosen(options_.algorithms, algorithm->name())) continue;
      const Row row = measure(algorithm, trace);
      p95_[std::string(trace)][std::string(algorithm->name())] = row.p95;
      print_row(algorithm->name(), row);
    }
  }

  static void print_header(std::string_view what) {
    fmt::print(
        "| {} | mean | p50 | p95 | rounds to 1.15 | moves a round | bytes a round | most bytes | rows | topics | plan "
        "ms |\n",
        what);
    fmt::print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  }

  static void print_row(std::string_view name, const Row& row) {
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} | {:.0f} | {:.1f} | {:.2f} % | {:.2f} % | {:.0f} | {:.2f} | {:.1f} |\n",
               name, row.mean, row.p50, row.p95, row.rounds, row.moves, 100.0 * row.bytes, 100.0 * row.bytes_max,
               row.rows, row.topic_cost, row.planning_ms);
    std::fflush(stdout);
  }

  /// Prints, for each trace, the default algorithm beside the best one.
  void summary() const {
    const std::string name(algorithms().front()->name());
    fmt::print(
        "\n### The default beside the best\n\n| trace | {} p95 | best p95 | of | ratio |\n|---|---:|---:|---|---:|\n",
        name);
    for (const auto& [trace, results] : p95_) {
      if (!results.contains(name)) continue;
      const auto best = std::min_element(results.begin(), results.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      fmt::print("| {} | {:.3f} | {:.3f} | {} | {:.3f} |\n", trace, results.at(name), best->second, best->first,
                 results.at(name) / best->second);
    }
  }

  /// Changes one thing at a time for the moving hot spot with 1,000 nodes. A round of half the length has half of the
  /// operations and half of the bytes; hot buckets then need twice as many rounds to come and go.
  void run_designs() {
    fmt::print("\n### moving-hotspot, {} nodes: what was tried\n\n", simulation_.trace.nodes);
    print_header("descent");
    const SimulationOptions plain = simulation_;
    design("as it is: one replica, 4,096 rows", [] {});
    design("as many rows as it likes", [&] { simulation_.rows_max = SIZE_MAX; });
    design("two replicas, reads shared", [&] { redundancy_ = 2; });
    design("rounds of half the length", [&] { half_rounds(); });
    design("rounds of half the length, as many rows as it likes", [&] {
      half_rounds();
      simulation_.rows_max = SIZE_MAX;
    });
    simulation_ = plain;
  }

  template <typename Change>
  void design(const std::string& name, Change change) {
    const SimulationOptions plain = simulation_;
    change();
    variant_ = '"' + name + '"';
    print_row(name, measure(algorithms().front(), "moving-hotspot"));
    simulation_ = plain;
    redundancy_ = 0;
  }

  void half_rounds() {
    simulation_.trace.round = 0.5;
    simulation_.trace.operations *= 0.5;
    simulation_.step_bytes_part *= 0.5;
    simulation_.rounds *= 2;
    simulation_.warm_up *= 2;
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
  unsigned redundancy_ = 0;  // 0: that of the trace.
  std::string variant_;
  CsvFile results_;
  CsvFile rounds_;
};

}  // namespace
}  // namespace fjord::balancer

int main(int argc, char** argv) {
  CLI::App app("Compares balancing algorithms on simulated loads.");
  fjord::balancer::Options options;
  app.add_option("--seeds", options.seeds, "seeds over which figures are means")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--first-seed", options.first_seed)->capture_default_str();
  app.add_option("--rounds", options.rounds, "rounds [300; 120 with 1,000 nodes]")->check(CLI::Range(80, 10'000));
  app.add_option("--trace", options.traces, "these traces alone");
  app.add_option("--algorithm", options.algorithms, "these algorithms alone");
  app.add_option("--output", options.output, "folder for CSV files; without it none are written");
  app.add_flag("--quick", options.quick, "one seed, 10 nodes, 100 rounds");
  app.add_flag("--large", options.large, "1,000 nodes and one seed instead");
  app.add_flag("--designs", options.designs, "what was tried for the moving hot spot with 1,000 nodes instead");
  CLI11_PARSE(app, argc, argv);
  if (options.quick) options.seeds = 1;
  fjord::balancer::Experiment(options).run();
  return 0;
}
