#include "fjord/library/tuning.h"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <unistd.h>

#include "fjord/library/admin.h"
#include "live_cluster.h"
#include "tuning_calls.h"
#include "tuning_changes.h"
#include "tuning_metrics.h"

namespace fjord {

namespace {

Result<tuner::HardwareProfile> profile_of(const TuningSource& source) {
  if (source.profile.empty()) return tuner::HardwareProfile();
  return tuner::parse_profile(source.profile, "profile");
}

/// Reads the metrics twice. Returns nothing without addresses.
Result<std::optional<tuner::PeriodFigures>> measure(const TuningSource& source) {
  if (source.metrics.empty()) return std::optional<tuner::PeriodFigures>();
  const ClusterReading before = read_cluster(source.metrics);
  wait_for_period(source.sample, source.stop);
  const tuner::PeriodFigures figures = figures_between(before, read_cluster(source.metrics));
  if (figures.nodes_read == 0) return Status(StatusCode::Unavailable, "no node answers with metrics");
  return std::optional(figures);
}

/// Returns the advice without the report. The workload comes from the source, or else describes machines like this one.
/// The cluster's size, its settings and the rates of its metrics replace what the workload says about them.
Result<TuningAdvice> describe(const TuningSource& source, const LiveCluster& live,
                              const tuner::HardwareProfile& profile) {
  TuningAdvice described;
  tuner::Workload& workload = described.workload;
  const bool has_file = !source.workload.empty();
  if (has_file) {
    FJORD_TRY_ASSIGN(workload, tuner::parse_workload(source.workload, "workload"));
  } else {
    workload.cores = std::max(1U, std::thread::hardware_concurrency());
    workload.memory_bytes =
        static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  }
  take_live(live, workload);
  FJORD_TRY_ASSIGN(const auto figures, measure(source));
  if (figures) described.fullest_used_share = figures->fullest_used_share;
  described.inputs =
      figures ? take_figures(*figures, has_file, profile, workload) : inputs_not_measured(has_file, workload);
  return described;
}

Result<TuningAdvice> advise_live(const TuningSource& source, const LiveCluster& live) {
  FJORD_TRY_ASSIGN(const tuner::HardwareProfile profile, profile_of(source));
  FJORD_TRY_ASSIGN(TuningAdvice advice, describe(source, live, profile));
  advice.report = tuner::advise(advice.workload, profile);
  return advice;
}

}  // namespace

void wait_for_period(Duration period, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, period, [] { return false; });
}

Result<AppliedTuning> apply_if_unchanged(ClientCore& core, const SettingTexts& values, const std::string& id,
                                         const std::string& tag, const std::string& reason, std::uint64_t seen) {
  const auto change = Admin(core).set(values, {.if_version = seen, .reason = reason, .tag = tag});
  if (change) return AppliedTuning{.id = id, .version = change->version, .unix_us = 0, .who = tag, .values = {}};
  if (change.error().code() != StatusCode::TestAndSetFailed) return change.error();
  return Status(StatusCode::Busy, "the configuration was changed by another client meanwhile");
}

Result<TuningAdvice> Tuning::advise_offline(const TuningSource& source) {
  FJORD_TRY_ASSIGN(const tuner::HardwareProfile profile, profile_of(source));
  TuningAdvice advice;
  FJORD_TRY_ASSIGN(advice.workload, tuner::parse_workload(source.workload, "workload"));
  advice.inputs = inputs_not_measured(true, advice.workload);
  advice.report = tuner::advise(advice.workload, profile);
  return advice;
}

Result<TuningAdvice> Tuning::advise(const TuningSource& source) {
  FJORD_TRY_ASSIGN(const LiveCluster live, ask_live(Admin(*core_)));
  return advise_live(source, live);
}

Result<TuningPlan> Tuning::plan(const TuningSource& source, const std::vector<std::string>& only) {
  for (const std::string& name : only) {
    if (tuner::find_knob(name) != nullptr) continue;
    return Status(StatusCode::NotFound, fmt::format("{}: the tuner knows no such setting", name), {.setting = name});
  }
  FJORD_TRY_ASSIGN(const LiveCluster live, ask_live(Admin(*core_)));
  FJORD_TRY_ASSIGN(TuningAdvice advice, advise_live(source, live));
  tuner::ClusterCondition condition = condition_of(live);
  condition.fullest_used_share = advice.fullest_used_share;
  condition.memory_left_bytes = advice.workload.memory_bytes - advice.report.predicted_before.node_memory_bytes;
  return plan_changes(std::move(advice), condition, live.config.history, SystemClock().wall_now().us, only);
}

Result<AppliedTuning> Tuning::apply(const std::map<std::string, std::string>& values, const std::string& reason) {
  FJORD_TRY_ASSIGN(const Configuration config, Admin(*core_).configuration());
  const std::string id = tuning_id(values, SystemClock().wall_now().us);
  return apply_if_unchanged(*core_, values, id, id, reason, config.version);
}

Result<std::vector<AppliedTuning>> Tuning::history() {
  FJORD_TRY_ASSIGN(const Configuration config, Admin(*core_).configuration());
  return tuning_history(config.history);
}

Result<AppliedTuning> Tuning::revert(const std::string& id) {
  FJORD_TRY_ASSIGN(const Configuration config, Admin(*core_).configuration());
  FJORD_TRY_ASSIGN(const SettingTexts values, values_before(config.history, id));
  FJORD_TRY_ASSIGN(AppliedTuning reverted, apply_if_unchanged(*core_, values, id, revert_tag(id), {}, config.version));
  reverted.is_revert = true;
  for (const AppliedTuning& change : applied_tunings(config.history)) {
    if (change.id != id) continue;
    for (const auto& [name, before, after] : change.values) reverted.values.push_back({name, after, before});
  }
  return reverted;
}

}  // namespace fjord
