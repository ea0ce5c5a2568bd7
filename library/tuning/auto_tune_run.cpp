// The tuner in a loop: in each period it reads the metrics, asks the auto-tuner and carries out its changes.

#include <fmt/format.h>
#include <limits>

#include "fjord/library/admin.h"
#include "fjord/tuner/auto_tuner.h"
#include "live_cluster.h"
#include "tuning_calls.h"
#include "tuning_metrics.h"

namespace fjord {

namespace {

class AutoTuneRun {
 public:
  AutoTuneRun(ClientCore& core, const AutoTuneOptions& options, const TuningCallbacks& callbacks)
      : core_(core), options_(options), callbacks_(callbacks), tuner_(options.tuner, clock_) {}

  void run() {
    std::string modes;
    for (const auto& [name, mode] : options_.tuner.modes) {
      const char* word = mode == ControlMode::On ? "on" : mode == ControlMode::Advise ? "advise" : "off";
      modes += fmt::format("{}{}={}", modes.empty() ? "" : ", ", name, word);
    }
    say({.event = "started",
         .text = fmt::format("{}; one process a cluster: of two, each takes the other for a person", modes)});
    ClusterReading before = read_cluster(options_.metrics);
    const SystemClock clock;
    MonotonicTime next = clock.now();
    const int last = options_.periods == 0 ? std::numeric_limits<int>::max() : options_.periods;
    for (int number = 1; number <= last; ++number) {
      // If a period took too long, the next one still has its full length.
      next = std::max(next, clock.now() - options_.period) + options_.period;
      wait_for_period(next - clock.now(), options_.stop);
      if (options_.stop.stop_requested()) return;
      ClusterReading after = read_cluster(options_.metrics);
      end_of_period(number, before, after);
      before = std::move(after);
    }
  }

 private:
  void end_of_period(int number, const ClusterReading& before, const ClusterReading& after) {
    tuner::AutoTunerInput input;
    input.figures = figures_between(before, after);
    const auto objective = tuner::objective_of(input.figures, options_.tuner.target_s);
    if (callbacks_.on_period) callbacks_.on_period(number, input.figures, objective);
    const Result<LiveCluster> live = ask_live(Admin(core_));
    // Without metrics or status no setting is changed.
    if (!live || input.figures.nodes_read == 0) {
      return complain_once(live ? "no node shows its metrics" : live.error().message());
    }
    complaint_.clear();
    fill(*live, after, input);
    const tuner::AutoTunerStep step = tuner_.step(input);
    for (const tuner::AutoTunerNote& note : step.notes) {
      say({.event = tuner::to_string(note.kind),
           .loop = note.loop,
           .knob = note.kind == tuner::AutoTunerNote::Kind::Idle ? nullptr : note.knob,
           .old_value = note.old_value,
           .new_value = note.new_value,
           .text = note.text});
    }
    if (!step.order) return;
    const Status done = carry_out(*step.order, live->config);
    if (done) return;
    tuner_.failed(*step.order);
    say(*step.order, "failed", "", 0, done.message());
  }

  void fill(const LiveCluster& live, const ClusterReading& reading, tuner::AutoTunerInput& input) {
    input.condition = condition_of(live);
    input.condition.fullest_used_share = input.figures.fullest_used_share;
    input.condition.memory_left_bytes = input.figures.memory_available_bytes;
    input.condition.is_degraded = input.condition.is_degraded || input.figures.nodes_silent > 0;
    input.size = size_of(live);
    input.values = settings_in_use(reading);
    for (const SettingInfo& setting : live.config.settings) {
      const tuner::Knob* knob = tuner::find_knob(setting.name);
      if (knob == nullptr) continue;
      // Nodes may not use a new value yet, so the configured value takes precedence.
      if (const auto value = tuner::parse_value(*knob, live_value(live.config, setting.name))) {
        input.values[setting.name] = *value;
      }
    }
    if (!is_replayed_) replay(live.config.history, clock_, tuner_.rails());
    is_replayed_ = true;
    clock_.set(SystemClock().wall_now().us);
  }

  Status carry_out(const tuner::SettingChange& order, const Configuration& config) {
    const std::string setting(order.knob->name);
    SettingTexts values = {{setting, tuner::value_text(*order.knob, order.new_value)}};
    std::string id = tuning_id(values, clock_.wall_now().us);
    std::string tag = id;
    if (!order.reverts.empty()) {
      id = order.reverts.front();
      tag = revert_tag(id);
      // A roll-back restores the value in the history, which may be "default". Without history it sets the order's
      // number.
      if (auto as_before = value_before(config.history, id, setting)) values = std::move(*as_before);
    }
    FJORD_TRY_ASSIGN(
        const AppliedTuning made,
        apply_if_unchanged(core_, values, id, tag, fmt::format("{}: {}", order.loop, order.reason), config.version));
    tuner_.made(order, id);
    say(order, order.reverts.empty() ? "changed" : "taken back", id, made.version, order.reason);
    return Status::ok();
  }

  void say(const tuner::SettingChange& order, std::string_view event, const std::string& id, std::uint64_t version,
           const std::string& text) {
    say({.event = event,
         .loop = order.loop,
         .knob = order.knob,
         .old_value = order.old_value,
         .new_value = order.new_value,
         .id = id,
         .config_version = version,
         .text = text});
  }
  void say(const TuningEvent& event) {
    if (callbacks_.on_event) callbacks_.on_event(event);
  }

  void complain_once(const std::string& what) {
    if (what == complaint_) return;
    complaint_ = what;
    say({.event = "blind", .text = what});
  }

  ClientCore& core_;
  const AutoTuneOptions& options_;
  const TuningCallbacks& callbacks_;
  HistoryClock clock_;
  tuner::AutoTuner tuner_;
  bool is_replayed_ = false;
  std::string complaint_;
};

}  // namespace

Status Tuning::run(const AutoTuneOptions& options, const TuningCallbacks& callbacks) {
  if (options.metrics.empty()) {
    return {StatusCode::InvalidArgument, "metrics is empty: the tuner reads the nodes' metrics"};
  }
  AutoTuneRun(*core_, options, callbacks).run();
  return Status::ok();
}

}  // namespace fjord
