// A change that is watched, and taken back if it is bad.

#include <fmt/format.h>

#include "fjord/library/admin.h"
#include "fjord/tuner/watched_change.h"
#include "live_cluster.h"
#include "tuning_calls.h"
#include "tuning_metrics.h"

namespace fjord {

namespace {

using Verdict = tuner::WatchedChange::Verdict;

/// Comparable periods needed before a change is made.
constexpr std::size_t kPeriodsBefore = 4;
/// Most periods observed before a change is made.
constexpr int kPeriodsBeforeMax = 12;
/// Attempts to take a change back; a concurrent change makes one fail.
constexpr int kTakeBackTries = 10;

/// One change, from the periods before it until the verdict.
class WatchedApply {
 public:
  WatchedApply(ClientCore& core, const TuningWatchOptions& options, const TuningCallbacks& callbacks, std::string id)
      : core_(core),
        options_(options),
        callbacks_(callbacks),
        id_(std::move(id)),
        watch_({.watch = {}, .scan_share = options.scan_share}),
        before_(read_cluster(options_.metrics)) {}

  Result<TuningVerdict> run(const SettingTexts& values, const std::string& reason) {
    for (int i = 0; i < kPeriodsBeforeMax && watch_.periods_before() < kPeriodsBefore; ++i) {
      static_cast<void>(watch_.observe(period()));
    }
    if (watch_.periods_before() < kPeriodsBefore) {
      return TuningVerdict::NotMade;
    }
    FJORD_TRY(make(values, reason));
    while (true) {
      const Verdict verdict = watch_.observe(period());
      if (const Status mine = check_mine(); !mine) return ended(TuningVerdict::Left, "left", mine.message());
      if (verdict == Verdict::RollBack) return take_back();
      if (verdict == Verdict::Keep) {
        return ended(TuningVerdict::Kept, "kept",
                     fmt::format("the objective is {:.2f} of what it was before", watch_.ratio()));
      }
      if (verdict == Verdict::Unknown) {
        return ended(TuningVerdict::Unknown, "unknown", "too little is asked to judge it; it stays");
      }
    }
  }

 private:
  std::optional<tuner::Objective> period() {
    wait_for_period(options_.period, {});
    ClusterReading after = read_cluster(options_.metrics);
    const tuner::PeriodFigures figures = figures_between(before_, after);
    before_ = std::move(after);
    const auto objective = tuner::objective_of(figures, options_.target_s);
    ++periods_;
    if (callbacks_.on_period) callbacks_.on_period(periods_, figures, objective);
    return objective;
  }

  Status make(const SettingTexts& values, const std::string& reason) {
    FJORD_TRY_ASSIGN(const LiveCluster live, ask_live(Admin(core_)));
    const tuner::ClusterCondition condition = condition_of(live);
    if (condition.is_degraded || condition.is_under_maintenance) {
      return Status(StatusCode::Unavailable, "the cluster is degraded or under maintenance: no change can be judged");
    }
    FJORD_TRY_ASSIGN(const AppliedTuning made,
                     apply_if_unchanged(core_, values, id_, id_, reason, live.config.version));
    watch_.changed(id_, tuner::Yardstick::Total);
    std::string text;
    for (const auto& [name, value] : values) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
    say({.event = "changed", .id = id_, .config_version = made.version, .text = text});
    return Status::ok();
  }

  /// Returns an error if one of the changed settings has been changed again.
  Status check_mine() {
    const auto config = Admin(core_).configuration();
    if (!config) return Status::ok();  // No answer: the next period asks again.
    const Status mine = values_before(config->history, id_).status();
    return mine.code() == StatusCode::InvalidArgument ? mine : Status::ok();
  }

  Result<TuningVerdict> take_back() {
    const std::string why = fmt::format("the objective was {} of what it was before", watch_.ratios_text());
    Result<AppliedTuning> made = Status(StatusCode::Busy, "");
    for (int i = 0; i < kTakeBackTries && !made; ++i) {
      if (i > 0) wait_for_period(options_.period, {});
      made = try_to_take_back(why);
    }
    if (!made) {
      return made.error().with_context(
          fmt::format("{} is bad and could not be taken back; fjord tune revert {}", id_, id_));
    }
    say({.event = "taken back", .id = id_, .config_version = made->version, .text = why});
    return TuningVerdict::TakenBack;
  }

  Result<AppliedTuning> try_to_take_back(const std::string& why) {
    FJORD_TRY_ASSIGN(const Configuration config, Admin(core_).configuration());
    FJORD_TRY_ASSIGN(const SettingTexts values, values_before(config.history, id_));
    return apply_if_unchanged(core_, values, id_, revert_tag(id_), why, config.version);
  }

  TuningVerdict ended(TuningVerdict verdict, std::string_view event, const std::string& text) {
    say({.event = event, .id = id_, .text = text});
    return verdict;
  }
  void say(const TuningEvent& event) {
    if (callbacks_.on_event) callbacks_.on_event(event);
  }

  ClientCore& core_;
  const TuningWatchOptions& options_;
  const TuningCallbacks& callbacks_;
  const std::string id_;
  tuner::WatchedChange watch_;
  ClusterReading before_;
  int periods_ = 0;
};

}  // namespace

Result<TuningVerdict> Tuning::apply_and_watch(const std::map<std::string, std::string>& values,
                                              const std::string& reason, const TuningWatchOptions& options,
                                              const TuningCallbacks& callbacks) {
  if (options.metrics.empty()) {
    return Status(StatusCode::InvalidArgument, "metrics is empty: a change is judged by the nodes' metrics");
  }
  const std::string id = tuning_id(values, SystemClock().wall_now().us);
  return WatchedApply(*core_, options, callbacks, id).run(values, reason);
}

}  // namespace fjord
