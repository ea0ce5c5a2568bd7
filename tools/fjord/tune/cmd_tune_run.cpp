#include <csignal>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <thread>
#include <unistd.h>

#include "commands/commands.h"
#include "fjord/library/admin.h"
#include "tune/metric_addresses.h"
#include "tune/tune_log.h"
#include "tune/tune_objective.h"

namespace fjord::cli {
namespace {

using Modes = std::map<std::string, ControlMode, std::less<>>;

Result<Modes> modes_of(const std::string& text) {
  Modes modes;
  for (const std::string_view name : tuner::AutoTuner::loop_names()) {
    modes[std::string(name)] = ControlMode::Advise;
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
    mode->second = value == "on" ? ControlMode::On : value == "off" ? ControlMode::Off : ControlMode::Advise;
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
  AutoTuneOptions options;
  options.metrics = std::move(*addresses);
  options.period = Duration(static_cast<std::int64_t>(args.period_s * 1e6));
  options.periods = args.periods;
  options.tuner.modes = *modes;
  options.tuner.target_s = objective->target_s;
  options.tuner.watch.scan_share = objective->scan_share;
  options.tuner.entries.controller.quorum = static_cast<std::uint64_t>(args.entries_quorum);
  options.tuner.entries.controller.cpu_share_min = args.entries_share;
  options.tuner.cache.least_wait_share = args.cache_share;
  const TuneLog log(args.common.json(), args.show_periods);
  const Status ended = client_of(args.common).admin().tuning().run(options, log.callbacks());
  return ended ? static_cast<int>(kOk) : report(ended);
}

}  // namespace fjord::cli
