// fjord-sim: runs simulated clusters from seeds and checks the invariants.

#include <CLI/CLI.hpp>
#include <chrono>
#include <fmt/format.h>

#include "fjord/common/log.h"
#include "fjord/sim/scenarios.h"

namespace {

using fjord::sim::ScenarioOptions;
using fjord::sim::ScenarioResult;

struct Arguments {
  std::uint64_t seed = 1;
  std::uint64_t runs = 1;
  bool fresh = false;
  bool twice = false;
  bool verbose = false;
  bool log = false;
  bool expect_failure = false;
  std::string scenario = "all";
  std::string bug = "none";
  std::size_t trace = 0;
  bool clock_skew = false;
};

/// Runs one scenario from one seed; returns its failure, empty if there is none.
std::string run(const Arguments& arguments, const std::string& scenario, const ScenarioOptions& options) {
  auto execute = scenario == "job"       ? fjord::sim::run_job
                 : scenario == "updates" ? fjord::sim::run_updates
                 : scenario == "damage"  ? fjord::sim::run_damage
                                         : fjord::sim::run_operations;
  ScenarioResult result = execute(options);
  if (result.failure.empty() && arguments.twice) {
    ScenarioResult again = execute(options);
    if (again.trace_hash != result.trace_hash) {
      result.failure = fmt::format("I17: trace hash {:016x}, then {:016x}", result.trace_hash, again.trace_hash);
    }
  }
  if (arguments.verbose || arguments.trace > 0) {
    for (const std::string& line : result.trace) fmt::print("{}\n", line);
    fmt::print("{} seed {}: trace hash {:016x}, {} events; {}\n", scenario, options.seed, result.trace_hash,
               result.events, result.summary);
  }
  if (!result.failure.empty()) {
    fmt::print(
        "{} seed {}: {}\n  again: fjord-sim --scenario {} --seed {}{}\n", scenario, options.seed, result.failure,
        scenario, options.seed,
        (arguments.bug == "none" ? "" : " --bug " + arguments.bug) + (arguments.clock_skew ? " --clock-skew" : ""));
    std::fflush(stdout);
  }
  return result.failure;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Runs whole clusters on one thread from a seed, with faults, and checks Fjord's invariants.\n\n"
      "Example: fjord-sim --seed 1 --runs 1000"};
  Arguments arguments;
  app.add_option("--seed", arguments.seed, "First seed")->capture_default_str();
  app.add_option("--runs", arguments.runs, "Number of seeds, rising from the first")->capture_default_str();
  app.add_option("--scenario", arguments.scenario, "Which scenario")
      ->check(CLI::IsMember({"operations", "updates", "damage", "job", "all"}))
      ->capture_default_str();
  app.add_option("--bug", arguments.bug,
                 "Put in a bug: skip-replica, forget-tuple, read-out-of-sync, forget-tokens, guard-reads-anywhere, "
                 "skip-repair, repair-unmerged")
      ->capture_default_str();
  app.add_flag("--expect-failure", arguments.expect_failure, "Succeed if a seed fails, and stop there");
  app.add_flag("--clock-skew", arguments.clock_skew, "Wall clocks that are wrong by up to ten minutes");
  app.add_flag("--fresh", arguments.fresh, "Draw the first seed from the operating system");
  app.add_flag("--twice", arguments.twice, "Run each seed twice and compare the trace hashes");
  app.add_flag("--log", arguments.log, "Let the nodes log to standard error");
  app.add_flag("-v,--verbose", arguments.verbose, "A line about every run");
  app.add_option("--trace", arguments.trace, "Print the last N events of every run");
  CLI11_PARSE(app, argc, argv);

  fjord::log::set_level(arguments.log ? fjord::log::Level::Info : fjord::log::Level::Off);
  fjord::Result<fjord::sim::Bug> bug = fjord::sim::bug_from_string(arguments.bug);
  if (!bug) {
    fmt::print(stderr, "fjord-sim: {}\n", bug.error().message());
    return 2;
  }
  if (arguments.fresh) arguments.seed = fjord::Random::from_system().next() >> 16;
  std::vector<std::string> scenarios{arguments.scenario};
  if (arguments.scenario == "all") scenarios = {"operations", "updates", "damage", "job"};

  auto start = std::chrono::steady_clock::now();
  std::uint64_t failures = 0;
  std::uint64_t done = 0;
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    for (const std::string& scenario : scenarios) {
      ScenarioOptions options{arguments.seed + i, *bug, arguments.trace, arguments.clock_skew};
      ++done;
      if (!run(arguments, scenario, options).empty()) ++failures;
    }
    if (arguments.expect_failure && failures > 0) break;
  }
  double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("fjord-sim: {} runs from seed {} in {:.1f} s ({:.2f} s a run), {} failed\n", done, arguments.seed, took,
             took / static_cast<double>(done), failures);
  if (arguments.expect_failure) return failures > 0 ? 0 : 1;
  return failures > 0 ? 1 : 0;
}
