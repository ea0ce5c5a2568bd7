// Repeats figure 6.4 of [KBD 2020] with any delays: what is lost if changes of data and of slices overtake each other.

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <vector>

#include "fjord/sim/pipeline.h"

namespace fjord::sim {
namespace {

constexpr std::array<double, 6> kDelays{0.1, 0.3, 1.0, 3.0, 10.0, 30.0};

struct Rule {
  const char* name;
  ProcessingOrder order;
  MovedItems moved;
};
constexpr std::array<Rule, 3> kRules{
    Rule{"as they arrive", ProcessingOrder::AsTheyArrive, MovedItems::NamedByMapper},
    Rule{"causal order", ProcessingOrder::Causal, MovedItems::NamedByMapper},
    Rule{"as they arrive with own copies", ProcessingOrder::AsTheyArrive, MovedItems::OwnCopy}};

/// Sums of the results for several seeds.
struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t seeds_with_losses = 0;  ///< Seeds for which a removal was lost.
  PipelineResult all;

  void add(const PipelineResult& one) {
    ++seeds;
    seeds_with_losses += one.removals_lost > 0 ? 1 : 0;
    all.removals += one.removals;
    all.moves += one.moves;
    all.removals_lost += one.removals_lost;
    all.left_behind += one.left_behind;
    all.missing += one.missing;
    all.outdated += one.outdated;
    all.never_processed += one.never_processed;
    all.passed_on += one.passed_on;
    all.waited += one.waited;
  }
  void add(const Sum& other) {
    const std::uint64_t with_losses = seeds_with_losses + other.seeds_with_losses;
    const std::uint64_t count = seeds + other.seeds;
    add(other.all);
    seeds = count;
    seeds_with_losses = with_losses;
  }
  double mean_wait() const { return all.waited / static_cast<double>(std::max<std::uint64_t>(all.passed_on, 1)); }
};

Sum run(const Rule& rule, double delay_max, std::uint64_t seeds) {
  Sum sum;
  PipelineOptions options;
  options.order = rule.order;
  options.moved = rule.moved;
  options.delay_max = delay_max;
  for (options.seed = 1; options.seed <= seeds; ++options.seed) sum.add(run_pipeline(options));
  return sum;
}

void print_delays(const std::vector<std::vector<Sum>>& sums, const std::string& output) {
  std::string csv =
      "rule,delay_max,seeds,seeds_with_lost_removals,removals,removals_lost,left_behind,missing,outdated,wait\n";
  fmt::print(
      "\n### By delay\n\nSeeds in which a removal was lost, and the mean time from a change to its arrival at the "
      "slave.\n\n"
      "| greatest mean delay of a link | as they arrive | time | causal order | time |\n|---:|---:|---:|---:|---:|\n");
  for (std::size_t d = 0; d < kDelays.size(); ++d) {
    fmt::print("| {} |", kDelays[d]);
    for (std::size_t r = 0; r < kRules.size(); ++r) {
      const Sum& sum = sums[r][d];
      csv += fmt::format("{},{},{},{},{},{},{},{},{},{:.4f}\n", kRules[r].name, kDelays[d], sum.seeds,
                         sum.seeds_with_losses, sum.all.removals, sum.all.removals_lost, sum.all.left_behind,
                         sum.all.missing, sum.all.outdated, sum.mean_wait());
      if (r == 2) continue;
      fmt::print(" {:.2f} % | {:.2f} |",
                 100.0 * static_cast<double>(sum.seeds_with_losses) / static_cast<double>(sum.seeds), sum.mean_wait());
    }
    fmt::print("\n");
  }
  if (!output.empty()) std::ofstream(output + "/delays.csv") << csv;
}

/// Runs all rules with all delays. Returns false if the results contradict the main claim of the experiment's page.
bool run_all(std::uint64_t seeds, const std::string& output) {
  std::vector<std::vector<Sum>> sums(kRules.size());
  std::vector<Sum> totals(kRules.size());
  for (std::size_t r = 0; r < kRules.size(); ++r) {
    for (std::size_t d = 0; d < kDelays.size(); ++d) {
      // Each delay gets an equal part of the seeds.
      const std::uint64_t part = seeds * (d + 1) / kDelays.size() - seeds * d / kDelays.size();
      sums[r].push_back(run(kRules[r], kDelays[d], part));
      totals[r].add(sums[r].back());
    }
  }
  fmt::print(
      "\n### {} seeds\n\n| distributors process | removals | moves of slices | removals lost | seeds with one | items "
      "left "
      "behind | missing | outdated |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
      seeds);
  for (std::size_t r = 0; r < kRules.size(); ++r) {
    const Sum& sum = totals[r];
    fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} |\n", kRules[r].name, sum.all.removals, sum.all.moves,
               sum.all.removals_lost, sum.seeds_with_losses, sum.all.left_behind, sum.all.missing, sum.all.outdated);
  }
  print_delays(sums, output);
  const bool holds = totals[0].all.removals_lost > 0 && totals[1].all.wrong() == 0;
  fmt::print("\n### Goal\n\n| what | | |\n|---|---|---|\n| removals lost: rule off > 0, on 0 | {} and {} | {} |\n",
             totals[0].all.removals_lost, totals[1].all.removals_lost, holds ? "holds" : "**does not hold**");
  return holds;
}

}  // namespace
}  // namespace fjord::sim

int main(int argc, char** argv) {
  CLI::App app("Lets changes of data and of slices overtake each other, with causal order and without it.");
  bool quick = false;
  std::string output;
  std::uint64_t seeds = 100'000;
  app.add_flag("--quick", quick, "6,000 seeds");
  app.add_option("--seeds", seeds, "Number of seeds")->capture_default_str();
  app.add_option("--output", output, "Folder for the CSV file; without it there is none");
  CLI11_PARSE(app, argc, argv);
  return fjord::sim::run_all(quick ? 6000 : seeds, output) ? 0 : 1;
}
