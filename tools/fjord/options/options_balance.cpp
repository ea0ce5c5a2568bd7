#include "options/options.h"

namespace fjord::cli {
namespace {

constexpr const char* kSimulationColumns =
    "\nColumns: mean, p50, p95, max: imbalance (load of the hottest node over the mean) in the rounds after the first "
    "40, "
    "or after half of less than 80 rounds; balanced: rounds from the event of the trace until the imbalance is below "
    "1.15, or never; moves: replicas moved in a round; bytes %: share of all bytes moved in a round; rows: slices that "
    "are elsewhere than at first, or whose reads are shared unevenly; plan ms: the longest planning of a round\n";

/// Adds the options of the commands that simulate.
void add_simulation(CLI::App& app, BalanceArgs& args) {
  auto* trace = app.add_option("--trace", args.trace,
                               "Loads that are made: zipf, moving-hotspot, flash, diurnal, alternating, step, "
                               "node-add, node-loss or topics "
                               "(default: moving-hotspot)")
                    ->check(CLI::IsMember({"zipf", "moving-hotspot", "flash", "diurnal", "alternating", "step",
                                           "node-add", "node-loss", "topics"}))
                    ->type_name("NAME");
  app.add_option("--file", args.file, "Loads that `fjord balance record` has written, over and over")
      ->excludes(trace)
      ->type_name("FILE");
  app.add_option("--nodes", args.nodes, "Storage nodes (default: 20)")->check(CLI::Range(2, 65'000));
  app.add_option("--buckets", args.buckets, "Buckets (default: 16384)")->check(CLI::Range(16, 1 << 20));
  app.add_option("--rounds", args.rounds, "Rounds, more than 60 for a trace with an event (default: 300)")
      ->check(whole_number(1, 1'000'000));
  app.add_option("--seed", args.seed, "Seed of the loads (default: 1)")->check(whole_number());
  add_output(app, args.common.output);
  app.footer(kSimulationColumns + app.get_footer());
}

}  // namespace

void add_balance(CLI::App& app, BalanceArgs& args, Action& action) {
  CLI::App* balance = app.add_subcommand("balance", "Moves buckets from hot storage nodes to cool ones");
  balance->require_subcommand(1);
  balance->footer("\nExample:\n  fjord balance status\n" + std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*balance, name, what, example);
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  CLI::App* plan = add("plan", "What the next step would move, by the loads of the last round", "fjord balance plan",
                       run_balance_plan);
  CLI::App* apply = add("apply", "Moves what `plan` shows, on the cluster state that it was planned on",
                        "fjord balance apply --yes --reason 'hot customer'", run_balance_apply);
  CLI::App* status = add("status", "Loads of the nodes, the hottest buckets and why they are not moved",
                         "fjord balance status -n 20", run_balance_status);
  status->add_option("-n,--lines", args.lines, "Buckets to show (default: 10)")->check(whole_number(1, 65'536));
  CLI::App* slices = add("slices", "The loads of all buckets, the hottest first; `fjord bucket show` takes their names",
                         "fjord balance slices --limit 20", run_balance_slices);
  slices->add_option("--limit", args.limit, "Buckets to show (default: all)")->check(whole_number(1, 65'536));
  CLI::App* history =
      add("history", "The steps: what was moved, when, why, and by whom", "fjord balance history", run_balance_history);
  CLI::App* revert = add("revert", "Makes the table of overrides what it was before a step and all later ones",
                         "fjord balance revert 12 --yes", run_balance_revert);
  revert->add_option("STEP", args.step, "See history")->required()->check(whole_number(1));
  CLI::App* record = add("record", "Writes the loads of each round to a file, for simulate and compare",
                         "fjord balance record loads.txt --rounds 60", run_balance_record);
  record->add_option("FILE", args.file, "Is replaced")->required()->type_name("FILE");
  record->add_option("--rounds", args.rounds, "Rounds (default: 300); Ctrl-C ends it earlier")
      ->check(whole_number(1, 1'000'000));
  for (CLI::App* one : {plan, apply}) {
    one->add_option("--algorithm", args.algorithm, "Instead of balancer.algorithm")->type_name("NAME");
    one->add_option(
           "--initial", args.sample,
           "Before documents are put: level the bytes of this sample, a feed file (-: standard input), in place "
           "of loads, so that nothing moves later")
        ->type_name("FILE");
  }
  for (CLI::App* one : {apply, revert}) {
    one->add_flag("--yes", args.yes, "Do it; without, only show what would move");
    one->add_option("--reason", args.reason, "For the history")->type_name("TEXT");
  }
  for (CLI::App* one : {plan, apply, status, slices, history, revert, record}) add_common(*one, args.common);
  CLI::App* simulate = add("simulate", "An algorithm against loads in a simulated cluster; needs no cluster",
                           "fjord balance simulate --trace flash --nodes 20", run_balance_simulate);
  simulate->add_option("--algorithm", args.algorithm, "See compare (default: descent)")->type_name("NAME");
  CLI::App* compare = add("compare", "All algorithms side by side in a simulated cluster; needs no cluster",
                          "fjord balance compare --file loads.txt", run_balance_compare);
  for (CLI::App* one : {simulate, compare}) add_simulation(*one, args);
}

}  // namespace fjord::cli
