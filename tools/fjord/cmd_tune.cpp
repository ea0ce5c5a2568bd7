#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <thread>
#include <unistd.h>

#include "ask_cluster.h"
#include "calibrate.h"
#include "cluster_health.h"
#include "commands.h"
#include "fjord/common/hash.h"
#include "fjord/tuner/advisor.h"
#include "fjord/tuner/guard_rails.h"
#include "input_file.h"
#include "json_text.h"
#include "tune_change.h"
#include "tune_report.h"

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

/// What a running cluster says of itself.
struct Live {
  rpc::GetStatusReply status;
  rpc::GetConfigReply config;
};

Result<Live> ask(const Common& common) {
  FJORD_TRY_ASSIGN(const auto connection, connect_to(common));
  Live live;
  FJORD_TRY_ASSIGN(live.status, connection->sync().status());
  FJORD_TRY_ASSIGN(live.config, ask_cluster(*connection, rpc::GetConfig{}, common.timeout()));
  return live;
}

std::string live_value(const Live& live, std::string_view name) {
  for (const rpc::Setting& setting : live.config.settings) {
    if (setting.name == name) return setting.value.empty() ? setting.default_value : setting.value;
  }
  return "";
}

/// Fills in what the cluster knows: documents, their size, nodes, copies and settings. What is set in the configuration
/// file of a cluster nobody tells, so there its defaults stand, or what the workload says.
void take_live(const Live& live, tuner::Workload& w) {
  std::int64_t nodes = 0;
  double copies = 0;
  double bytes = 0;
  for (const rpc::NodeStatus& node : live.status.nodes) {
    if (!node.node.starts_with("storage.")) continue;
    ++nodes;
    copies += static_cast<double>(node.last.documents);
    bytes += static_cast<double>(node.last.bytes);
  }
  if (nodes > 0) w.nodes = nodes;
  for (const Knob& knob : tuner::knobs()) {
    if (knob.place != KnobPlace::Live) continue;
    if (const auto value = tuner::parse_value(knob, live_value(live, knob.name))) w.current.*(knob.member) = *value;
  }
  const std::string redundancy = live_value(live, "cluster.redundancy");
  if (!redundancy.empty()) {
    w.redundancy = std::strtoll(redundancy.c_str(), nullptr, 10);
  } else if (const auto at = live.status.info.distribution.find("redundancy"); at != std::string::npos) {
    const auto digit = live.status.info.distribution.find_first_of("0123456789", at);
    if (digit != std::string::npos) w.redundancy = std::strtoll(&live.status.info.distribution[digit], nullptr, 10);
  }
  w.redundancy = std::clamp<std::int64_t>(w.redundancy, 1, std::max<std::int64_t>(1, w.nodes));
  if (copies > 0) {
    w.documents = std::max(1.0, copies / static_cast<double>(w.redundancy));
    w.document_bytes = std::max(1.0, bytes / copies);
    w.document_bytes_p99 = std::max(w.document_bytes_p99, w.document_bytes);
  }
}

/// The workload of a running cluster: from the file, or of machines like this one.
Result<tuner::Workload> live_workload(const TuneArgs& args, const Live& live) {
  tuner::Workload w;
  if (args.workload.empty()) {
    w.cores = std::max(1U, std::thread::hardware_concurrency());
    w.memory_bytes = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  } else {
    FJORD_TRY_ASSIGN(w, workload_of(args));
  }
  take_live(live, w);
  return w;
}

struct Plan {
  tuner::Workload workload;
  tuner::Report report;
  TunePlan changes;
};

Result<Plan> make_plan(const TuneArgs& args, const Live& live) {
  Plan plan;
  FJORD_TRY_ASSIGN(const tuner::HardwareProfile profile, profile_of(args));
  FJORD_TRY_ASSIGN(plan.workload, live_workload(args, live));
  plan.report = tuner::advise(plan.workload, profile);
  tuner::ClusterCondition condition;
  condition.is_degraded = health_of(live.status).level != 0;
  condition.is_under_maintenance = live_value(live, "maintenance.paused") == "true";
  for (const rpc::NodeStatus& node : live.status.nodes) {
    condition.is_under_maintenance = condition.is_under_maintenance || !node.wanted.empty();
  }
  condition.memory_left_bytes = plan.workload.memory_bytes - plan.report.predicted_before.node_memory_bytes;
  const std::int64_t now_us = SystemClock().wall_now().us;
  plan.changes = plan_changes(plan.workload, plan.report, condition, live.config.versions, now_us, args.only);
  return plan;
}

int print_plan(const TuneArgs& args, const Plan& plan) {
  if (args.common.json()) {
    print_line(plan_json(plan.changes));
  } else {
    print(plan_text(plan.changes));
  }
  return kOk;
}

int usage_or(const Status& error) {
  const int code = report(error);
  return error.code() == StatusCode::InvalidArgument ? static_cast<int>(kUsage) : code;
}

}  // namespace

int run_tune_example() {
  print(tuner::example_workload());
  return kOk;
}

int run_tune_advise(const TuneArgs& args) {
  const auto profile = profile_of(args);
  if (!profile) return usage_or(profile.error());
  Result<tuner::Workload> workload = Status(StatusCode::InvalidArgument, "");
  if (args.live || args.workload.empty()) {
    const auto live = ask(args.common);
    if (!live) return report(live.error());
    workload = live_workload(args, *live);
  } else {
    workload = workload_of(args);
  }
  if (!workload) return usage_or(workload.error());
  const tuner::Report advice = tuner::advise(*workload, *profile);
  print(args.common.json() ? tune_report_json(*workload, advice) : tune_report_text(*workload, advice));
  return kOk;
}

int run_tune_calibrate(const TuneArgs& args) {
  tuner::HardwareProfile profile;
  if (fs::exists(args.output_file)) {
    const auto text = file_text(args.output_file);
    if (!text) return report(text.error());
    const auto before = tuner::parse_profile(*text, args.output_file);
    if (!before) return usage_or(before.error());
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
  const auto live = ask(args.common);
  if (!live) return report(live.error());
  const auto plan = make_plan(args, *live);
  if (!plan) return usage_or(plan.error());
  return print_plan(args, *plan);
}

int run_tune_apply(const TuneArgs& args) {
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  const auto live = ask(args.common);
  if (!live) return report(live.error());
  const auto plan = make_plan(args, *live);
  if (!plan) return usage_or(plan.error());
  const TunePlan& changes = plan->changes;
  print_plan(args, *plan);
  rpc::ChangeConfig request;
  for (const PlannedChange& change : changes.changes) {
    if (change.may_be_applied) request.set.push_back(fmt::format("{}={}", change.knob->name, change.new_text));
  }
  if (request.set.empty()) return changes.changes.empty() ? kOk : kRefused;
  const std::string id = change_id(request.set, SystemClock().wall_now().us);
  request.who = fmt::format("{} {}: {}", id, who_am_i(), args.reason);
  const auto reply = ask_cluster(**connection, std::move(request), args.common.timeout());
  if (!reply) return report(reply.error());
  if (!args.common.json())
    print_line(fmt::format("applied as {}, configuration version {}", id, reply->config_version));
  return kOk;
}

int run_tune_history(const TuneArgs& args) {
  const auto live = ask(args.common);
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
