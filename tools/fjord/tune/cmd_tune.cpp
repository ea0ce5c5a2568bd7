#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <thread>
#include <unistd.h>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "commands/setting_names.h"
#include "fjord/common/hash.h"
#include "fjord/library/detail/input_file.h"
#include "fjord/tuner/advisor.h"
#include "fjord/tuner/guard_rails.h"
#include "output/json_text.h"
#include "tune/calibrate.h"
#include "tune/tune_change.h"
#include "tune/tune_cluster.h"
#include "tune/tune_config.h"
#include "tune/tune_metrics.h"
#include "tune/tune_report.h"
#include "tune/tune_watch.h"

namespace fjord::cli {
namespace {

namespace fs = std::filesystem;

using tuner::Knob;
using tuner::KnobPlace;

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

Result<std::string> file_text(const std::string& path) {
  FJORD_TRY_ASSIGN(const auto file, InputFile::open(path));
  return file->read_all(kFileBytesMax);
}

Result<tuner::HardwareProfile> profile_of(const TuneArgs& args) {
  if (args.profile.empty()) return tuner::HardwareProfile();
  FJORD_TRY_ASSIGN(const std::string text, file_text(args.profile));
  return tuner::parse_profile(text, args.profile);
}

Result<tuner::Workload> workload_of(const TuneArgs& args) {
  FJORD_TRY_ASSIGN(const std::string text, file_text(args.workload));
  return tuner::parse_workload(text, args.workload);
}

/// Reads the metrics twice, some seconds apart. Returns nothing without addresses.
Result<std::optional<tuner::PeriodFigures>> measure(const TuneArgs& args) {
  FJORD_TRY_ASSIGN(const std::vector<std::string> addresses, metric_addresses(args.metrics, args.cluster_config));
  if (addresses.empty()) return std::optional<tuner::PeriodFigures>();
  const ClusterReading before = read_cluster(addresses);
  for (const auto& page : before.pages) {
    if (!page) complain(page.error().message());
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(args.sample_s));
  const tuner::PeriodFigures figures = figures_between(before, read_cluster(addresses));
  if (figures.nodes_read == 0) return Status(StatusCode::Unavailable, "no node answers with metrics");
  return std::optional(figures);
}

struct Described {
  tuner::Workload workload;
  std::vector<tuner::Input> inputs;  ///< Rates and shares with their origins.
  double fullest_used_share = 0;
};

/// Returns the workload of a running cluster: from the file, or for machines like this one; with the rates of its
/// metrics.
Result<Described> live_workload(const TuneArgs& args, const LiveCluster& live, const tuner::HardwareProfile& profile) {
  Described described;
  tuner::Workload& w = described.workload;
  const bool has_file = !args.workload.empty();
  if (!has_file) {
    w.cores = std::max(1U, std::thread::hardware_concurrency());
    w.memory_bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  } else {
    FJORD_TRY_ASSIGN(w, workload_of(args));
  }
  take_live(live, w);
  FJORD_TRY_ASSIGN(const auto figures, measure(args));
  if (figures) described.fullest_used_share = figures->fullest_used_share;
  described.inputs = figures ? take_figures(*figures, has_file, profile, w) : inputs_not_measured(has_file, w);
  return described;
}

/// Checks the names of --only. Errors: NotFound for a name that the tuner does not know.
Status check_only(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (tuner::find_knob(name) != nullptr) continue;
    return Status(StatusCode::NotFound, fmt::format("--only {}: the tuner knows no such setting", name));
  }
  return Status::ok();
}

struct Plan {
  tuner::Workload workload;
  std::vector<tuner::Input> inputs;
  tuner::Report report;
  TunePlan changes;
};

Result<Plan> make_plan(const TuneArgs& args, const LiveCluster& live) {
  Plan plan;
  FJORD_TRY(check_only(args.only));
  FJORD_TRY_ASSIGN(const tuner::HardwareProfile profile, profile_of(args));
  FJORD_TRY_ASSIGN(Described described, live_workload(args, live, profile));
  plan.workload = described.workload;
  plan.inputs = std::move(described.inputs);
  plan.report = tuner::advise(plan.workload, profile);
  tuner::ClusterCondition condition = condition_of(live);
  condition.fullest_used_share = described.fullest_used_share;
  condition.memory_left_bytes = plan.workload.memory_bytes - plan.report.predicted_before.node_memory_bytes;
  const std::int64_t now_us = SystemClock().wall_now().us;
  plan.changes = plan_changes(plan.workload, plan.report, condition, live.config.versions, now_us, args.only);
  return plan;
}

/// Checks the values of --set. Errors: InvalidArgument if one is not NAME=VALUE; NotFound for an unknown name.
Status check_assignments(const std::vector<rpc::Setting>& settings, const std::vector<std::string>& assignments) {
  for (const std::string& text : assignments) {
    if (text.find('=') == std::string::npos) {
      return Status(StatusCode::InvalidArgument, fmt::format("--set {}: expected NAME=VALUE", text));
    }
  }
  return check_setting_names(settings, assignments);
}

int print_plan(const TuneArgs& args, const Plan& plan) {
  if (args.common.json()) {
    print_line(plan_json(plan.changes, inputs_json(plan.inputs)));
  } else {
    print(inputs_text(plan.inputs));
    print(plan_text(plan.changes));
  }
  return kOk;
}

}  // namespace

Result<TuneObjective> tune_objective(const TuneArgs& args) {
  TuneObjective objective;
  if (!args.workload.empty()) {
    FJORD_TRY_ASSIGN(const tuner::Workload workload, workload_of(args));
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
  const auto profile = profile_of(args);
  if (!profile) return report(profile.error());
  Described described;
  if (args.live || args.workload.empty() || !args.metrics.empty() || !args.cluster_config.empty()) {
    const auto live = ask_live(args.common);
    if (!live) return report(live.error());
    auto known = live_workload(args, *live, *profile);
    if (!known) return report(known.error());
    described = std::move(*known);
  } else {
    const auto workload = workload_of(args);
    if (!workload) return report(workload.error());
    described.workload = *workload;
    described.inputs = inputs_not_measured(true, *workload);
  }
  const tuner::Report advice = tuner::advise(described.workload, *profile);
  if (args.common.json()) {
    print(tune_report_json(described.workload, advice, described.inputs));
  } else {
    print(inputs_text(described.inputs));
    print(tune_report_text(described.workload, advice));
  }
  return kOk;
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
  const auto live = ask_live(args.common);
  if (!live) return report(live.error());
  const auto plan = make_plan(args, *live);
  if (!plan) return report(plan.error());
  return print_plan(args, *plan);
}

int run_tune_apply(const TuneArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto live = ask_live(**connection, args.common.timeout());
  if (!live) return report(live.error());
  rpc::ChangeConfig request;
  request.set = args.set;
  if (const Status status = check_assignments(live->config.settings, args.set); !status) return report(status);
  if (args.set.empty()) {
    const auto plan = make_plan(args, *live);
    if (!plan) return report(plan.error());
    print_plan(args, *plan);
    for (const PlannedChange& change : plan->changes.changes) {
      if (change.may_be_applied) request.set.push_back(fmt::format("{}={}", change.knob->name, change.new_text));
    }
    if (request.set.empty()) return plan->changes.changes.empty() ? kOk : kRefused;
  }
  const std::string id = change_id(request.set, SystemClock().wall_now().us);
  request.who = fmt::format("{} {}: {}", id, who_am_i(), args.reason);
  if (args.watch) return apply_and_watch(args, **connection, id, std::move(request));
  const auto made =
      change_if_unchanged(**connection, args.common.timeout(), std::move(request), live->config.config_version);
  if (!made) return report(made.error());
  if (!args.common.json()) print_line(fmt::format("applied as {}, configuration version {}", id, *made));
  return kOk;
}

int run_tune_history(const TuneArgs& args) {
  const auto live = ask_live(args.common);
  if (!live) return report(live.error());
  for (const AppliedChange& change : applied_changes(live->config.versions)) {
    if (args.common.json()) {
      JsonText json;
      json.begin_object().key("id").text(change.id).key("version").number(change.version);
      json.key("unix_us").integer(change.unix_us).key("who").text(change.who).key("changes").begin_array();
      for (const ValueChange& one : change.values) {
        json.begin_object().key("name").text(one.name).key("old").text(one.before).key("new").text(one.after);
        json.end_object();
      }
      json.end_array().end_object();
      print_line(json.str());
      continue;
    }
    print_line(fmt::format("{}  version {}  {}  {}", change.id, change.version, time_text(change.unix_us), change.who));
    for (const ValueChange& one : change.values) {
      print_line(fmt::format("    {}: {} -> {}", one.name, one.before.empty() ? "(default)" : one.before,
                             one.after.empty() ? "(default)" : one.after));
    }
  }
  return kOk;
}

int run_tune_revert(const TuneArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto live = ask_cluster(**connection, rpc::GetConfig{}, args.common.timeout());
  if (!live) return report(live.error());
  auto request = revert_request(live->versions, args.id);
  if (!request) {
    const int code = report(request.error());
    return request.error().code() == StatusCode::InvalidArgument ? static_cast<int>(kRefused) : code;
  }
  request->who = fmt::format("revert of {} {}", args.id, who_am_i());
  const auto reply = ask_cluster(**connection, std::move(*request), args.common.timeout());
  if (!reply) return report(reply.error());
  for (const std::string& line : reply->changes) print_line(line);
  print_line(fmt::format("{} taken back, configuration version {}", args.id, reply->config_version));
  return kOk;
}

}  // namespace fjord::cli
