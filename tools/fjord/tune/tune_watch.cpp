#include "tune/tune_watch.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <thread>

#include "commands/ask_cluster.h"
#include "fjord/tuner/watched_change.h"
#include "tune/tune_change.h"
#include "tune/tune_cluster.h"
#include "tune/tune_config.h"
#include "tune/tune_log.h"
#include "tune/tune_metrics.h"

namespace fjord::cli {
namespace {

using Verdict = tuner::WatchedChange::Verdict;

/// Comparable periods needed before a change is made.
constexpr std::size_t kPeriodsBefore = 4;
/// Most periods observed before a change is made.
constexpr int kPeriodsBeforeMax = 12;
constexpr int kTakeBackTries = 10;  ///< Attempts to revert; a concurrent change makes one fail.

/// One change, from the periods before it until the verdict.
class WatchedApply {
 public:
  WatchedApply(const TuneArgs& args, Connection& connection, std::vector<std::string> addresses,
               const TuneObjective& objective, std::string id)
      : args_(args),
        connection_(connection),
        addresses_(std::move(addresses)),
        objective_(objective),
        id_(std::move(id)),
        log_(args.common.json(), args.show_periods),
        watch_({.watch = {}, .scan_share = objective.scan_share}),
        before_(read_cluster(addresses_)) {}

  int run(rpc::ChangeConfig request) {
    for (int i = 0; i < kPeriodsBeforeMax && watch_.periods_before() < kPeriodsBefore; ++i) {
      static_cast<void>(watch_.observe(period()));
    }
    if (watch_.periods_before() < kPeriodsBefore) {
      complain("too little is asked of the cluster to judge a change; nothing was changed");
      return kRefused;
    }
    if (const Status made = make(std::move(request)); !made) return report(made);
    while (true) {
      const Verdict verdict = watch_.observe(period());
      if (const Status mine = check_mine(); !mine) return say("left", mine.message()), kOk;
      if (verdict == Verdict::RollBack) return take_back();
      if (verdict == Verdict::Keep) {
        return say("kept", fmt::format("the objective is {:.2f} of what it was before", watch_.ratio())), kOk;
      }
      if (verdict == Verdict::Unknown) return say("unknown", "too little is asked to judge it; it stays"), kOk;
    }
  }

 private:
  std::optional<tuner::Objective> period() {
    std::this_thread::sleep_for(std::chrono::duration<double>(args_.period_s));
    ClusterReading after = read_cluster(addresses_);
    const tuner::PeriodFigures figures = figures_between(before_, after);
    before_ = std::move(after);
    const auto objective = tuner::objective_of(figures, objective_.target_s);
    log_.period(++periods_, figures, objective);
    return objective;
  }

  Status make(rpc::ChangeConfig request) {
    FJORD_TRY_ASSIGN(const LiveCluster live, ask_live(connection_, args_.common.timeout()));
    const tuner::ClusterCondition condition = condition_of(live);
    if (condition.is_degraded || condition.is_under_maintenance) {
      return Status(StatusCode::Unavailable, "the cluster is degraded or under maintenance: no change can be judged");
    }
    const std::string settings = fmt::format("{}", fmt::join(request.set, ", "));
    FJORD_TRY_ASSIGN(const std::uint64_t version, change_if_unchanged(connection_, args_.common.timeout(),
                                                                      std::move(request), live.config.config_version));
    watch_.changed(id_, tuner::Yardstick::Total);
    log_.say({.event = "changed", .id = id_, .config_version = version, .text = settings});
    return Status::ok();
  }

  /// Returns an error if one of the changed settings has been changed again.
  Status check_mine() {
    const auto config = ask_cluster(connection_, rpc::GetConfig{}, args_.common.timeout());
    if (!config) return Status::ok();  // no answer: the next period asks again
    const Status mine = revert_request(config->versions, id_).status();
    return mine.code() == StatusCode::InvalidArgument ? mine : Status::ok();
  }

  int take_back() {
    const std::string why = fmt::format("the objective was {} of what it was before", watch_.ratios_text());
    Result<std::uint64_t> made = Status(StatusCode::Busy, "");
    for (int i = 0; i < kTakeBackTries && !made; ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(args_.period_s));
      made = try_to_take_back(why);
    }
    if (!made) {
      complain(fmt::format("{} is bad and could not be taken back; fjord tune revert {}", id_, id_));
      return report(made.error());
    }
    log_.say({.event = "taken back", .id = id_, .config_version = *made, .text = why});
    return kRefused;
  }

  Result<std::uint64_t> try_to_take_back(const std::string& why) {
    FJORD_TRY_ASSIGN(const rpc::GetConfigReply config,
                     ask_cluster(connection_, rpc::GetConfig{}, args_.common.timeout()));
    FJORD_TRY_ASSIGN(rpc::ChangeConfig request, revert_request(config.versions, id_));
    request.who = fmt::format("revert of {} {}: {}", id_, who_am_i(), why);
    return change_if_unchanged(connection_, args_.common.timeout(), std::move(request), config.config_version);
  }

  void say(std::string_view event, const std::string& text) { log_.say({.event = event, .id = id_, .text = text}); }

  const TuneArgs& args_;
  Connection& connection_;
  const std::vector<std::string> addresses_;
  const TuneObjective objective_;
  const std::string id_;
  const TuneLog log_;
  tuner::WatchedChange watch_;
  ClusterReading before_;
  int periods_ = 0;
};

}  // namespace

int apply_and_watch(const TuneArgs& args, Connection& connection, const std::string& id, rpc::ChangeConfig request) {
  auto addresses = metric_addresses(args.metrics, args.cluster_config);
  if (addresses && addresses->empty()) {
    addresses = Status(StatusCode::InvalidArgument, "--watch needs --metrics or --cluster-config");
  }
  if (!addresses) return report(addresses.error());
  const auto objective = tune_objective(args);
  if (!objective) return report(objective.error());
  return WatchedApply(args, connection, std::move(*addresses), *objective, id).run(std::move(request));
}

}  // namespace fjord::cli
