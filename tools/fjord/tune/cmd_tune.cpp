#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "fjord/library/detail/input_file.h"
#include "output/json_text.h"
#include "output/time_text.h"
#include "tune/calibrate.h"
#include "tune/metric_addresses.h"
#include "tune/tune_log.h"
#include "tune/tune_objective.h"
#include "tune/tune_report.h"

namespace fjord::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

Result<std::string> file_text(const std::string& path) {
  FJORD_TRY_ASSIGN(const auto file, InputFile::open(path));
  return file->read_all(kFileBytesMax);
}

/// Checks both files, so that an error names the file and its line.
Result<TuningSource> source_of(const TuneArgs& args) {
  TuningSource source;
  if (!args.profile.empty()) {
    FJORD_TRY_ASSIGN(source.profile, file_text(args.profile));
    FJORD_TRY(tuner::parse_profile(source.profile, args.profile).status());
  }
  if (!args.workload.empty()) {
    FJORD_TRY_ASSIGN(source.workload, file_text(args.workload));
    FJORD_TRY(tuner::parse_workload(source.workload, args.workload).status());
  }
  FJORD_TRY_ASSIGN(source.metrics, metric_addresses(args.metrics, args.cluster_config));
  source.sample = Duration(static_cast<std::int64_t>(args.sample_s * 1e6));
  return source;
}

int print_plan(const TuneArgs& args, const TuningPlan& plan) {
  if (args.common.json()) {
    print_line(plan_json(plan));
  } else {
    print(inputs_text(plan.advice.inputs));
    print(plan_text(plan));
  }
  return kOk;
}

/// Connects to the cluster and calls `use(Tuning)`.
template <typename F>
int with_tuning(const Common& common, F use) {
  return with_admin(common, [&](Admin admin) { return use(admin.tuning()); });
}

int apply_and_watch(Tuning tuning, const TuneArgs& args, const std::map<std::string, std::string>& values) {
  TuningWatchOptions options;
  auto addresses = metric_addresses(args.metrics, args.cluster_config);
  if (addresses && addresses->empty()) {
    addresses = Status(StatusCode::InvalidArgument, "--watch needs --metrics or --cluster-config");
  }
  if (!addresses) return report(addresses.error());
  const auto objective = tune_objective(args);
  if (!objective) return report(objective.error());
  options.metrics = std::move(*addresses);
  options.period = Duration(static_cast<std::int64_t>(args.period_s * 1e6));
  options.target_s = objective->target_s;
  options.scan_share = objective->scan_share;
  const TuneLog log(args.common.json(), args.show_periods);
  const auto verdict = tuning.apply_and_watch(values, args.reason, options, log.callbacks());
  if (!verdict) return report(verdict.error());
  if (*verdict == TuningVerdict::NotMade) {
    complain("too little is asked of the cluster to judge a change; nothing was changed");
  }
  const bool is_in_force = *verdict != TuningVerdict::NotMade && *verdict != TuningVerdict::TakenBack;
  return is_in_force ? kOk : kRefused;
}

int apply(Tuning tuning, const TuneArgs& args, std::map<std::string, std::string> values) {
  if (values.empty()) {
    const auto source = source_of(args);
    if (!source) return report(source.error());
    const auto plan = tuning.plan(*source, args.only);
    if (!plan) return report(plan.error());
    print_plan(args, *plan);
    values = plan->values();
    if (values.empty()) return plan->changes.empty() ? kOk : kRefused;
  }
  if (args.watch) return apply_and_watch(tuning, args, values);
  const auto made = tuning.apply(values, args.reason);
  if (!made) return report(made.error());
  if (!args.common.json()) print_line(fmt::format("applied as {}, configuration version {}", made->id, made->version));
  return kOk;
}

const std::string& or_default(const std::string& value) {
  static const std::string text = "(default)";
  return value.empty() ? text : value;
}

}  // namespace

Result<TuneObjective> tune_objective(const TuneArgs& args) {
  TuneObjective objective;
  if (!args.workload.empty()) {
    FJORD_TRY_ASSIGN(const std::string text, file_text(args.workload));
    FJORD_TRY_ASSIGN(const tuner::Workload workload, tuner::parse_workload(text, args.workload));
    objective.target_s = workload.latency_target_s;
    objective.scan_share = workload.scan_share;
  }
  if (args.target_ms > 0) objective.target_s = args.target_ms / 1e3;
  return objective;
}

int run_tune_example() {
  print(tuner::example_workload());
  return kOk;
}

int run_tune_advise(const TuneArgs& args) {
  const auto source = source_of(args);
  if (!source) return report(source.error());
  const auto show = [&](const Result<TuningAdvice>& advice) {
    if (!advice) return report(advice.error());
    if (args.common.json()) {
      print(tune_report_json(advice->workload, advice->report, advice->inputs));
    } else {
      print(inputs_text(advice->inputs));
      print(tune_report_text(advice->workload, advice->report));
    }
    return static_cast<int>(kOk);
  };
  if (!args.live && !source->workload.empty() && source->metrics.empty()) return show(Tuning::advise_offline(*source));
  return with_tuning(args.common, [&](Tuning tuning) { return show(tuning.advise(*source)); });
}

int run_tune_calibrate(const TuneArgs& args) {
  tuner::HardwareProfile profile;
  if (fs::exists(args.output_file)) {
    const auto text = file_text(args.output_file);
    if (!text) return report(text.error());
    const auto before = tuner::parse_profile(*text, args.output_file);
    if (!before) return report(before.error());
    profile = *before;
  }
  CalibrateOptions options;
  options.directory = args.directory;
  options.seconds = args.seconds;
  options.file_bytes = args.file_mib << 20;
  const Status status = calibrate(options, profile, [](const std::string& line) { print_line(line); });
  if (!status) return report(status);
  std::ofstream out(args.output_file, std::ios::trunc);
  out << tuner::profile_text(profile,
                             "Of the machine and disk on which `fjord tune calibrate` ran; see "
                             "docs/operating/tuning.md");
  out.close();
  if (!out) return report(Status(StatusCode::IoError, args.output_file + ": cannot be written"));
  print_line("profile: " + args.output_file);
  return kOk;
}

int run_tune_plan(const TuneArgs& args) {
  const auto source = source_of(args);
  if (!source) return report(source.error());
  return with_tuning(args.common, [&](Tuning tuning) {
    const auto plan = tuning.plan(*source, args.only);
    return plan ? print_plan(args, *plan) : report(plan.error());
  });
}

int run_tune_apply(const TuneArgs& args) {
  const auto values = parse_assignments("--set", args.set);
  if (!values) return report(values.error());
  return with_tuning(args.common, [&](Tuning tuning) { return apply(tuning, args, *values); });
}

int run_tune_history(const TuneArgs& args) {
  return with_tuning(args.common, [&](Tuning tuning) {
    const auto changes = tuning.history();
    if (!changes) return report(changes.error());
    for (const AppliedTuning& change : *changes) {
      if (args.common.json()) {
        JsonText json;
        json.begin_object()
            .key("id")
            .text(change.id)
            .key("is_revert")
            .boolean(change.is_revert)
            .key("version")
            .number(change.version);
        json.key("unix_us").integer(change.unix_us).key("who").text(change.who).key("changes").begin_array();
        for (const auto& [name, before, after] : change.values) {
          json.begin_object().key("name").text(name).key("old").text(before).key("new").text(after).end_object();
        }
        json.end_array().end_object();
        print_line(json.str());
        continue;
      }
      print_line(fmt::format("{}{}  version {}  {}  {}", change.is_revert ? "takes back " : "", change.id,
                             change.version, time_text(change.unix_us), change.who));
      for (const auto& [name, before, after] : change.values) {
        print_line(fmt::format("    {}: {} -> {}", name, or_default(before), or_default(after)));
      }
    }
    return static_cast<int>(kOk);
  });
}

int run_tune_revert(const TuneArgs& args) {
  return with_tuning(args.common, [&](Tuning tuning) {
    const auto reverted = tuning.revert(args.id);
    if (!reverted) {
      const int code = report(reverted.error());
      return reverted.error().code() == StatusCode::InvalidArgument ? static_cast<int>(kRefused) : code;
    }
    for (const auto& [name, before, after] : reverted->values) {
      print_line(
          fmt::format("{}: {} -> {}", name, before.empty() ? "default" : before, after.empty() ? "default" : after));
    }
    print_line(fmt::format("{} taken back, configuration version {}", args.id, reverted->version));
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
