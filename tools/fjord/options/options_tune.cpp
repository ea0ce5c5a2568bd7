#include "options/options.h"

namespace fjord::cli {
namespace {

void add_tune_metrics(CLI::App& app, TuneArgs& args) {
  app.add_option("--metrics", args.metrics, "Where all nodes show their metrics, host:port,...")
      ->type_name("ADDRESSES");
  app.add_option("--cluster-config", args.cluster_config, "The same from the lines http of this file")
      ->type_name("FILE");
}

void add_tune_watch(CLI::App& apply, CLI::App& run, TuneArgs& args) {
  apply.add_option("--set", args.set, "This in place of the advice; may be given several times")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  apply.add_flag("--watch", args.watch,
                 "Looks at the metrics before and after, and takes the change back if the objective is 5 % worse for "
                 "three periods (exit code 8)");
  run.add_option("--controllers", args.controllers,
                 "LOOP=off|advise|on,... of visitors, maintenance, split, entries, cache (default: all advise)")
      ->type_name("MODES");
  run.add_option("--periods", args.periods, "Number of periods to end after (default: goes on)")
      ->check(CLI::Range(1, 1 << 30));
  run.add_flag_callback(
      "--once", [&args] { args.periods = 1; }, "One period");
  run.add_option("--entries-quorum", args.entries_quorum,
                 "entries: number of nodes that must find their puts bound by the search (default: 2)")
      ->check(CLI::Range(1, 65535));
  run.add_option("--entries-share", args.entries_share,
                 "entries: share of a put's time in the search from which it counts as bound (default: 0.5)")
      ->check(CLI::Range(0.05, 0.95));
  run.add_option("--cache-share", args.cache_share,
                 "cache: share of the time that nodes wait for indexes or documents from which a change is worth it "
                 "(default: 0.01)")
      ->check(CLI::Range(0.0001, 0.95));
  for (CLI::App* one : {&apply, &run}) {
    one->add_option("--period", args.period_s, "Time between two readings of the metrics (default: 10s)")
        ->transform(duration(0.1, 3600.0))
        ->type_name("DURATION");
    one->add_option("--target-ms", args.target_ms,
                    "p99 that reads and writes are to have (default: of the workload file, or 20)")
        ->check(CLI::Range(0.001, 3'600'000.0));
    one->add_flag("--show-periods", args.show_periods, "A line for each period");
  }
}

}  // namespace

void add_tune(CLI::App& app, TuneArgs& args, Action& action) {
  CLI::App* tune = app.add_subcommand("tune", "Advice on settings: from a description of a workload, or of a cluster");
  tune->require_subcommand(1);
  tune->footer("\nExample:\n  fjord tune example > w.yaml && fjord tune advise --workload w.yaml\n" +
               std::string(kExitCodes));
  const auto add = [&](const std::string& name, const std::string& what, const std::string& example, auto run) {
    CLI::App* made = command(*tune, name, what, example);
    made->callback([&args, &action, run] { action = [&args, run] { return run(args); }; });
    return made;
  };
  add("example", "Prints a workload file with all keys", "fjord tune example > w.yaml",
      [](const TuneArgs&) { return run_tune_example(); });
  CLI::App* advise =
      add("advise", "What to set, why, and what it would do; of a workload file alone without any cluster",
          "fjord tune advise --workload w.yaml --profile fjord-profile.yaml", run_tune_advise);
  advise->add_flag(
      "--live", args.live,
      "Documents, nodes and settings from the cluster, rates from its metrics, only the rest from the file");
  CLI::App* plan = add("plan", "The advice for a running cluster as a change of its settings; changes nothing",
                       "fjord tune plan --workload w.yaml", run_tune_plan);
  CLI::App* apply = add("apply", "Sets what plan shows; the change has an id, for revert",
                        "fjord tune apply --workload w.yaml --reason 'more visits now'", run_tune_apply);
  apply->add_option("--reason", args.reason, "For the history")->required()->type_name("TEXT");
  CLI::App* run =
      add("run", "Drives the controllers of settings until it is ended; one process a cluster",
          "fjord tune run --cluster-config cluster.yaml --controllers visitors=on,maintenance=on", run_tune_run);
  add_tune_watch(*apply, *run, args);
  for (CLI::App* one : {advise, plan, apply, run}) add_tune_metrics(*one, args);
  for (CLI::App* one : {advise, plan, apply}) {
    one->add_option("--sample", args.sample_s, "Time between the two readings of the metrics (default: 10s)")
        ->transform(duration(0.1, 3600.0))
        ->type_name("DURATION");
  }
  for (CLI::App* one : {plan, apply}) {
    one->add_option("--only", args.only, "Only this setting; may be given several times")
        ->type_name("NAME")
        ->allow_extra_args(false);
  }
  for (CLI::App* one : {advise, plan, apply, run}) {
    one->add_option("--workload", args.workload,
                    "File that says what the cluster is for (default: what the cluster says)")
        ->type_name("FILE");
    if (one == run) continue;
    one->add_option("--profile", args.profile, "Measured constants, from calibrate (default: an ordinary machine)")
        ->type_name("FILE");
  }
  CLI::App* history = add("history", "The changes that were applied", "fjord tune history", run_tune_history);
  CLI::App* revert =
      add("revert", "Takes one change back, others stay", "fjord tune revert tune-1a2b3c4d", run_tune_revert);
  revert->add_option("ID", args.id, "See history")->required();
  for (CLI::App* one : {advise, plan, apply, run, history, revert}) add_common(*one, args.common);
  CLI::App* calibrate =
      add("calibrate", "Measures disk, CPU and memory of this machine, and writes a profile",
          "fjord tune calibrate --dir /var/lib/fjord --output fjord-profile.yaml", run_tune_calibrate);
  calibrate->add_option("--dir", args.directory, "On the disk to be measured (default: here)")->type_name("DIR");
  calibrate->add_option("--output", args.output_file, "The profile (default: fjord-profile.yaml)")->type_name("FILE");
  calibrate->add_option("--seconds", args.seconds, "For all measurements (default: 20)")->check(CLI::Range(1.0, 60.0));
  calibrate->add_option("--file-mib", args.file_mib, "Size of the file that is written and read (default: 512)")
      ->check(CLI::Range(16, 65'536));
}

}  // namespace fjord::cli
