// fjord-sim: runs simulated clusters from seeds and checks the invariants.

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <unistd.h>

#include "fjord/common/fatal_signals.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/sim/scenarios.h"
#include "minimise.h"

namespace {

using fjord::sim::Coverage;
using fjord::sim::FaultKind;
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
  bool minimise = false;
  std::string scenario = "all";
  std::string bug = "none";
  std::size_t trace = 0;
  bool clock_skew = false;
  std::vector<std::string> faults;
  std::vector<unsigned> only_faults;
  std::string workload;
  unsigned bits = 0;
  std::int64_t span_ms = 0;
  bool strict_reads = false;
  std::string claims = "drawn";
  bool coverage = false;
  std::string coverage_file;
};

using Scenario = ScenarioResult (*)(const ScenarioOptions&);

Scenario scenario_of(const std::string& name) {
  if (name == "job") return fjord::sim::run_job;
  if (name == "updates") return fjord::sim::run_updates;
  if (name == "damage") return fjord::sim::run_damage;
  if (name == "balance") return fjord::sim::run_balance;
  if (name == "quantum") return fjord::sim::run_quantum;
  if (name == "search") return fjord::sim::run_search;
  return name == "chaos" ? fjord::sim::run_chaos : fjord::sim::run_operations;
}

/// Returns the command that repeats the run.
std::string again(const Arguments& arguments, const std::string& scenario, const ScenarioOptions& options) {
  std::string text = fmt::format("fjord-sim --scenario {} --seed {}", scenario, options.seed);
  if (arguments.bug != "none") text += " --bug " + arguments.bug;
  if (options.clock_skew) text += " --clock-skew";
  if (!arguments.faults.empty()) text += fmt::format(" --faults {}", fmt::join(arguments.faults, ","));
  if (options.only_faults) {
    text += options.only_faults->empty() ? " --only-faults none"
                                         : fmt::format(" --only-faults {}", fmt::join(*options.only_faults, ","));
  }
  if (options.workload != 0) text += fmt::format(" --workload W{}", options.workload);
  if (options.bits != 0) text += fmt::format(" --bits {}", options.bits);
  if (options.span.count() > 0) text += fmt::format(" --span-ms {}", options.span.count() / 1000);
  if (options.strict_reads) text += " --strict-reads";
  if (options.claims != "drawn") text += " --claims " + options.claims;
  return text;
}

/// Text to print if a failing check aborts the process.
std::string& running() {
  static std::string text;
  return text;
}

void tell_of_abort(int) { static_cast<void>(!write(STDOUT_FILENO, running().data(), running().size())); }

/// Runs one scenario from one seed. Returns its failure; empty if there is none.
std::string run(const Arguments& arguments, const std::string& scenario, const ScenarioOptions& options,
                Coverage& coverage) {
  const Scenario execute = scenario_of(scenario);
  running() = fmt::format("{} seed {}: a check failed\n  again: {}\n", scenario, options.seed,
                          again(arguments, scenario, options));
  ScenarioResult result = execute(options);
  if (result.failure.empty() && arguments.twice) {
    ScenarioResult second = execute(options);
    if (second.trace_hash != result.trace_hash) {
      result.failure = fmt::format("I17: trace hash {:016x}, then {:016x}", result.trace_hash, second.trace_hash);
    }
  }
  coverage.add(result.coverage);
  if (arguments.verbose || arguments.trace > 0) {
    for (const std::string& line : result.trace) fmt::print("{}\n", line);
    fmt::print("{} seed {}: trace hash {:016x}, {} events; {}\n", scenario, options.seed, result.trace_hash,
               result.events, result.summary);
  }
  if (!result.failure.empty() || arguments.verbose) {
    for (const std::string& fault : result.faults) fmt::print("  {}\n", fault);
  }
  if (!result.failure.empty()) {
    fmt::print("{} seed {}: {}\n  again: {}\n", scenario, options.seed, result.failure,
               again(arguments, scenario, options));
    if (arguments.minimise && scenario == "chaos") {
      const fjord::sim::Minimised least = fjord::sim::minimise(execute, options, result);
      fmt::print("  least, after {} runs: {}\n", least.runs, least.result.failure);
      for (const std::string& fault : least.result.faults) fmt::print("    {}\n", fault);
      fmt::print("  again: {}\n", again(arguments, scenario, least.options));
    }
    std::fflush(stdout);
  }
  return result.failure;
}

void add_options(CLI::App& app, Arguments& arguments) {
  app.add_option("--seed", arguments.seed, "First seed")->capture_default_str();
  app.add_option("--runs", arguments.runs, "Number of seeds, rising from the first")->capture_default_str();
  app.add_option("--scenario", arguments.scenario, "Which scenario; all: all but chaos")
      ->check(CLI::IsMember({"operations", "updates", "damage", "job", "balance", "quantum", "search", "chaos", "all"}))
      ->capture_default_str();
  app.add_option("--bug", arguments.bug, "Put in a bug: " + fjord::sim::bug_names())->capture_default_str();
  app.add_flag("--expect-failure", arguments.expect_failure, "Succeed if a seed fails, and stop there");
  app.add_flag("--clock-skew", arguments.clock_skew, "Wall clocks that are wrong by up to ten minutes");
  app.add_flag(
      "--fresh", arguments.fresh,
      "Draw the first seed from the operating system, or from $FJORD_FRESH_SEED, a text; --seed is added to it");
  app.add_flag("--twice", arguments.twice, "Run each seed twice and compare the trace hashes");
  app.add_flag("--log", arguments.log, "Let the nodes log to standard error");
  app.add_flag("-v,--verbose", arguments.verbose, "A line about every run, and its faults");
  app.add_option("--trace", arguments.trace, "Print the last N events of every run");
  app.add_option("--faults", arguments.faults,
                 "Chaos: kinds that may be drawn, by name; if there is none, all but those that wait for a mend")
      ->delimiter(',');
  app.add_option_function<std::string>(
         "--only-faults",
         [&arguments](const std::string& list) {
           for (const std::string& number : CLI::detail::split(list, ',')) {
             if (number != "none") arguments.only_faults.push_back(static_cast<unsigned>(std::stoul(number)));
           }
         },
         "Chaos: of the faults that are drawn only these, by number; 'none': none")
      ->trigger_on_parse();
  app.add_option("--workload", arguments.workload, "Chaos: W1 to W9 instead of one that is drawn")
      ->check(CLI::IsMember({"W1", "W2", "W3", "W4", "W5", "W6", "W7", "W8", "W9"}));
  app.add_option("--bits", arguments.bits, "Chaos: distribution bits instead of a number that is drawn")
      ->check(CLI::Range(1, 20));
  app.add_option("--span-ms", arguments.span_ms, "Chaos: how long faults and workloads go on");
  app.add_flag("--strict-reads", arguments.strict_reads,
               "Chaos: gets with consistency=session, which have to be linearizable");
  app.add_option("--claims", arguments.claims,
                 "Chaos, operations, damage: what is done to a copy of the cluster to see whether it is as it says")
      ->check(CLI::IsMember({"drawn", "none", "destroy", "lose", "silence", "damage", "files", "stop"}))
      ->capture_default_str();
  app.add_option("--coverage", arguments.coverage_file,
                 "Chaos: print how often a fault was active while an invariant could break; to a file: as TSV")
      ->expected(0, 1);
  app.add_flag("--minimise", arguments.minimise, "Chaos: look for the fewest faults that a failing seed needs");
}

/// Errors: InvalidArgument if an argument is unknown.
fjord::Result<ScenarioOptions> options_of(const Arguments& arguments, const CLI::App& app) {
  ScenarioOptions options;
  FJORD_TRY_ASSIGN(options.bug, fjord::sim::bug_from_string(arguments.bug));
  options.keep_trace = arguments.trace;
  options.clock_skew = arguments.clock_skew;
  for (const std::string& name : arguments.faults) {
    FJORD_TRY_ASSIGN(const FaultKind kind, fjord::sim::fault_kind_from_string(name));
    options.faults.insert(kind);
  }
  if (app.count("--only-faults") > 0)
    options.only_faults.emplace(arguments.only_faults.begin(), arguments.only_faults.end());
  options.span = fjord::milliseconds(arguments.span_ms);
  if (!arguments.workload.empty()) options.workload = static_cast<unsigned>(arguments.workload[1] - '0');
  options.bits = arguments.bits;
  options.strict_reads = arguments.strict_reads;
  options.claims = arguments.claims;
  return options;
}

void tell_coverage(const Arguments& arguments, const Coverage& coverage) {
  fmt::print("How often a fault was exercised while an invariant could break:\n{}", coverage.to_table());
  if (arguments.coverage_file.empty()) return;
  std::ofstream file(arguments.coverage_file);
  file << coverage.to_tsv();
}

/// Returns a random seed, or one derived from the environment variable FJORD_FRESH_SEED; equal texts give equal seeds.
std::uint64_t fresh_seed() {
  const char* text = std::getenv("FJORD_FRESH_SEED");
  if (text != nullptr && *text != '\0') return fjord::hash64(text) >> 16;
  return fjord::Random::from_system().next() >> 16;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Runs whole clusters on one thread from a seed, with faults, and checks Fjord's invariants.\n\n"
      "Example: fjord-sim --seed 1 --runs 1000"};
  Arguments arguments;
  add_options(app, arguments);
  CLI11_PARSE(app, argc, argv);
  arguments.coverage = app.count("--coverage") > 0;

  std::signal(SIGABRT, tell_of_abort);
  fjord::report_fatal_signals("fjord-sim");
  fjord::log::set_level(arguments.log ? fjord::log::Level::Info : fjord::log::Level::Off);
  fjord::Result<ScenarioOptions> options = options_of(arguments, app);
  if (!options) {
    fmt::print(stderr, "fjord-sim: {}\n", options.error().message());
    return 2;
  }
  if (arguments.fresh) arguments.seed += fresh_seed();
  std::vector<std::string> scenarios{arguments.scenario};
  if (arguments.scenario == "all")
    scenarios = {"operations", "updates", "damage", "job", "balance", "quantum", "search"};

  const auto start = std::chrono::steady_clock::now();
  const std::clock_t cpu_start = std::clock();
  std::uint64_t failures = 0;
  std::uint64_t done = 0;
  Coverage coverage;
  for (std::uint64_t i = 0; i < arguments.runs; ++i) {
    for (const std::string& scenario : scenarios) {
      options->seed = arguments.seed + i;
      ++done;
      if (!run(arguments, scenario, *options, coverage).empty()) ++failures;
    }
    if (arguments.expect_failure && failures > 0) break;
  }
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double cpu = static_cast<double>(std::clock() - cpu_start) / CLOCKS_PER_SEC;
  if (arguments.coverage) tell_coverage(arguments, coverage);
  fmt::print("fjord-sim: {} runs from seed {} in {:.1f} s ({:.3f} core-seconds a run), {} failed\n", done,
             arguments.seed, took, cpu / static_cast<double>(done), failures);
  if (arguments.expect_failure) return failures > 0 ? 0 : 1;
  return failures > 0 ? 1 : 0;
}
