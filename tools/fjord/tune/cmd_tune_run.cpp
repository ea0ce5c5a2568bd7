#include <chrono>
#include <csignal>
#include <fmt/format.h>
#include <limits>
#include <thread>
#include <unistd.h>

#include "commands/ask_cluster.h"
#include "commands/commands.h"
#include "fjord/tuner/auto_tuner.h"
#include "tune/tune_change.h"
#include "tune/tune_cluster.h"
#include "tune/tune_config.h"
#include "tune/tune_log.h"
#include "tune/tune_metrics.h"
#include "tune/tune_watch.h"

namespace fjord::cli {
namespace {

using Modes = std::map<std::string, tuner::ControlMode, std::less<>>;

Result<Modes> modes_of(const std::string& text) {
  Modes modes;
  for (const std::string_view name : tuner::AutoTuner::loop_names()) {
    modes[std::string(name)] = tuner::ControlMode::Advise;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    at = end + 1;
    const std::size_t equals = std::min(one.find('='), one.size());
    const auto mode = modes.find(one.substr(0, equals));
    const std::string value = one.substr(std::min(equals + 1, one.size()));
    if (mode == modes.end() || (value != "off" && value != "advise" && value != "on")) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("--controllers: \"{}\": expected LOOP=off|advise|on with one of {}", one,
                                fmt::join(tuner::AutoTuner::loop_names(), ", ")));
    }
    mode->second = value == "on"    ? tuner::ControlMode::On
                   : value == "off" ? tuner::ControlMode::Off
                                    : tuner::ControlMode::Advise;
  }
  return modes;
}

/// Makes SIGINT, SIGTERM and SIGHUP end the process at once. Must be called before any other thread starts.
void end_on_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    while (sigwait(&signals, &signal) != 0) {
    }
    // The process has no state to save: the history of the cluster contains its changes.
    ::_exit(kOk);
  }).detach();
}

/// In each period, reads the metrics, asks the auto-tuner and carries out its orders.
class Driver {
 public:
  Driver(const TuneArgs& args, std::vector<std::string> addresses, const tuner::AutoTunerOptions& options)
      : args_(args),
        addresses_(std::move(addresses)),
        target_s_(options.target_s),
        log_(args.common.json(), args.show_periods),
        tuner_(options, clock_) {}

  int run(const Modes& modes) {
    std::string text;
    for (const auto& [name, mode] : modes) {
      const char* word = mode == tuner::ControlMode::On ? "on" : mode == tuner::ControlMode::Advise ? "advise" : "off";
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, word);
    }
    log_.say({.event = "started",
              .text = fmt::format("{}; one process a cluster: of two, each takes the other for a person", text)});
    ClusterReading before = read_cluster(addresses_);
    auto next = std::chrono::steady_clock::now();
    const int last = args_.periods == 0 ? std::numeric_limits<int>::max() : args_.periods;
    for (int number = 1; number <= last; ++number) {
      // If a period took too long, the next one still has its full length.
      next = std::max(next, std::chrono::steady_clock::now() - period()) + period();
      std::this_thread::sleep_until(next);
      ClusterReading after = read_cluster(addresses_);
      end_of_period(number, before, after);
      before = std::move(after);
    }
    return kOk;
  }

 private:
  std::chrono::steady_clock::duration period() const {
    return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(args_.period_s));
  }

  void end_of_period(int number, const ClusterReading& before, const ClusterReading& after) {
    tuner::AutoTunerInput input;
    input.figures = figures_between(before, after);
    log_.period(number, input.figures, tuner::objective_of(input.figures, target_s_));
    const Result<LiveCluster> live = ask();
    // Without metrics or status no setting is changed.
    if (!live || input.figures.nodes_read == 0) {
      return complain_once(live ? "no node shows its metrics" : live.error().message());
    }
    complaint_.clear();
    fill(*live, after, input);
    const tuner::AutoTunerStep step = tuner_.step(input);
    for (const tuner::AutoTunerNote& note : step.notes) {
      log_.say({.event = tuner::to_string(note.kind),
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

  Result<LiveCluster> ask() {
    if (connection_ == nullptr) {
      FJORD_TRY_ASSIGN(connection_, connect_to(args_.common));
    }
    return ask_live(*connection_, args_.common.timeout());
  }

  void fill(const LiveCluster& live, const ClusterReading& reading, tuner::AutoTunerInput& input) {
    input.condition = condition_of(live);
    input.condition.fullest_used_share = input.figures.fullest_used_share;
    input.condition.memory_left_bytes = input.figures.memory_available_bytes;
    input.condition.is_degraded = input.condition.is_degraded || input.figures.nodes_silent > 0;
    input.size = size_of(live);
    input.values = settings_in_use(reading);
    for (const rpc::Setting& setting : live.config.settings) {
      const tuner::Knob* knob = tuner::find_knob(setting.name);
      if (knob == nullptr) continue;
      // Nodes may not use a new value yet, so the configured value takes precedence.
      if (const auto value = tuner::parse_value(*knob, live_value(live.config, setting.name))) {
        input.values[setting.name] = *value;
      }
    }
    if (!is_replayed_) replay(live.config.versions, clock_, tuner_.rails());
    is_replayed_ = true;
    clock_.set(SystemClock().wall_now().us);
  }

  Status carry_out(const tuner::SettingChange& order, const rpc::GetConfigReply& config) {
    const std::string setting(order.knob->name);
    rpc::ChangeConfig request;
    request.set = {fmt::format("{}={}", setting, tuner::value_text(*order.knob, order.new_value))};
    std::string id = change_id(request.set, clock_.wall_now().us);
    request.who = fmt::format("{} {}: {}: {}", id, who_am_i(), order.loop, order.reason);
    if (!order.reverts.empty()) {
      id = order.reverts.front();
      // A change too old for the history is reverted to the number in the order, even if the old value was a default.
      if (auto as_before = revert_setting_request(config.versions, id, setting)) request = std::move(*as_before);
      request.who = fmt::format("revert of {} {}: {}: {}", id, who_am_i(), order.loop, order.reason);
    }
    FJORD_TRY_ASSIGN(const std::uint64_t version, change_if_unchanged(*connection_, args_.common.timeout(),
                                                                      std::move(request), config.config_version));
    tuner_.made(order, id);
    say(order, order.reverts.empty() ? "changed" : "taken back", id, version, order.reason);
    return Status::ok();
  }

  void say(const tuner::SettingChange& order, std::string_view event, const std::string& id, std::uint64_t version,
           const std::string& text) {
    log_.say({.event = event,
              .loop = order.loop,
              .knob = order.knob,
              .old_value = order.old_value,
              .new_value = order.new_value,
              .id = id,
              .config_version = version,
              .text = text});
  }

  void complain_once(const std::string& what) {
    if (what == complaint_) return;
    complaint_ = what;
    log_.say({.event = "blind", .text = what});
  }

  const TuneArgs& args_;
  const std::vector<std::string> addresses_;
  const double target_s_;
  const TuneLog log_;
  HistoryClock clock_;
  tuner::AutoTuner tuner_;
  std::unique_ptr<Connection> connection_;
  bool is_replayed_ = false;
  std::string complaint_;
};

}  // namespace

int run_tune_run(const TuneArgs& args) {
  const auto modes = modes_of(args.controllers);
  if (!modes) return report(modes.error());
  auto addresses = metric_addresses(args.metrics, args.cluster_config);
  if (addresses && addresses->empty()) {
    addresses = Status(StatusCode::InvalidArgument, "tune run needs --metrics or --cluster-config");
  }
  if (!addresses) return report(addresses.error());
  const auto objective = tune_objective(args);
  if (!objective) return report(objective.error());
  end_on_signal();
  tuner::AutoTunerOptions options;
  options.modes = *modes;
  options.target_s = objective->target_s;
  options.watch.scan_share = objective->scan_share;
  options.entries.controller.quorum = static_cast<std::uint64_t>(args.entries_quorum);
  options.entries.controller.cpu_share_min = args.entries_share;
  options.cache.least_wait_share = args.cache_share;
  return Driver(args, std::move(*addresses), options).run(*modes);
}

}  // namespace fjord::cli
