#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/result.h"
#include "fjord/tuner/advisor.h"
#include "fjord/tuner/auto_tuner.h"
#include "fjord/tuner/period_figures.h"
#include "fjord/tuner/workload.h"

/// Advice on settings, and changes of settings that are watched. docs/operating/tuning.md
namespace fjord {

class ClientCore;

/// What advice is computed from.
struct TuningSource {
  std::string workload = {};  ///< YAML text of a workload (tuner::example_workload()); empty: that of the cluster.
  std::string profile = {};   ///< YAML text of a hardware profile, as `fjord tune calibrate` makes; empty: built in.
  std::vector<std::string> metrics = {};  ///< host:port of the nodes' metrics; none: rates are not measured.
  Duration sample = seconds(10);          ///< For how long the rates are measured.
  std::stop_token stop = {};              ///< A stop request shortens the measurement.
};

struct TuningAdvice {
  tuner::Workload workload;          ///< Workload, size and settings of the cluster.
  std::vector<tuner::Input> inputs;  ///< Rates and shares that the advice is based on, each with its origin.
  double fullest_used_share = 0;     ///< Used share of the fullest disk; 0: not measured.
  tuner::Report report;
};

/// One piece of advice, with the verdict of the guard rails.
struct PlannedChange {
  const tuner::Knob* knob = nullptr;
  std::string old_text;
  std::string new_text;
  std::string reason;
  /// Expected effect, "+12.0 % (+3.1 to +20.4)" or "p99 900.0 ms -> 250.0 ms, which is over the target"; or empty.
  std::string effect;
  bool may_be_applied = false;
  std::string why_not;
  double moved_bytes = 0;  ///< Bytes that each node rewrites or sends.
};

struct TuningPlan {
  TuningAdvice advice;
  std::vector<PlannedChange> changes;
  double moved_bytes = 0;  ///< Bytes that the permitted changes move on each node.
  double seconds = 0;      ///< Duration of that movement at maintenance.bytes_per_s.

  /// Returns the permitted changes for Tuning::apply().
  std::map<std::string, std::string> values() const;
};

/// A change that the tuner has made, or a revert of one.
struct AppliedTuning {
  struct Value {
    std::string name;
    std::string before;  ///< Empty: the default.
    std::string after;
  };
  std::string id;  ///< "tune-0123abcd"; of a revert the id of the change that it took back.
  bool is_revert = false;
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::vector<Value> values;
};

/// Something that happened during a run of the tuner.
struct TuningEvent {
  std::string_view event;  ///< "started", "advice", "changed", "kept", "taken back", "failed", "blind", ...
  std::string loop = {};
  const tuner::Knob* knob = nullptr;
  std::int64_t old_value = 0;
  std::int64_t new_value = 0;
  std::string id = {};               ///< Id of the change.
  std::uint64_t config_version = 0;  ///< New version of the configuration; 0: unchanged.
  std::string text = {};
};

/// Callbacks of a run, on the calling thread.
struct TuningCallbacks {
  std::function<void(const TuningEvent&)> on_event = {};
  /// The figures of each period; `objective` is absent if the period says nothing.
  std::function<void(int number, const tuner::PeriodFigures&, const std::optional<tuner::Objective>& objective)>
      on_period = {};
};

struct TuningWatchOptions {
  std::vector<std::string> metrics = {};  ///< host:port of the nodes' metrics. Required.
  Duration period = seconds(10);
  double target_s = 0.02;   ///< Target p99 latency of reads and writes, in seconds.
  double scan_share = 0.2;  ///< Weight of visits in the objective, 0 to 1.
};

enum class TuningVerdict : std::uint8_t {
  Kept,       ///< The objective did not get worse.
  TakenBack,  ///< The objective got worse; the old values are in force again.
  Unknown,    ///< Clients sent too few operations to judge the change; it stays.
  Left,       ///< Another party has changed one of the settings again.
  NotMade,    ///< Clients send too few operations to judge a change; nothing was changed.
};

struct AutoTuneOptions {
  std::vector<std::string> metrics = {};  ///< host:port of the nodes' metrics. Required.
  Duration period = seconds(10);
  int periods = 0;  ///< Number of periods after which the tuner ends; 0: it ends by `stop`.
  tuner::AutoTunerOptions tuner = {};
  std::stop_token stop = {};
};

/// The tuner of a cluster.
///
/// Threading: any thread. Every member blocks. Lifetime: the client must outlive it.
class Tuning {
 public:
  explicit Tuning(ClientCore& core) : core_(&core) {}

  /// Returns advice for a workload and settings that a file describes, without asking a cluster. Errors:
  /// InvalidArgument with the line.
  static Result<TuningAdvice> advise_offline(const TuningSource& source);
  /// Returns advice for the running cluster. Errors: InvalidArgument with the line of a malformed text; Unavailable if
  /// no node shows its metrics.
  Result<TuningAdvice> advise(const TuningSource& source);
  /// Returns the advice as changes. `only` names the wanted settings; none: all. Errors: those of advise(); NotFound
  /// for a name that the tuner does not know.
  Result<TuningPlan> plan(const TuningSource& source, const std::vector<std::string>& only = {});

  /// Changes live settings, all or none, as one change with an id. Errors: those of Admin::set(); Busy if the
  /// configuration changed meanwhile.
  Result<AppliedTuning> apply(const std::map<std::string, std::string>& values, const std::string& reason = {});
  /// Observes the cluster for some periods, makes the change, observes again, and takes it back if the objective gets
  /// worse. Errors: those of apply(); Unavailable if the cluster is degraded, with no change made; those of taking it
  /// back.
  Result<TuningVerdict> apply_and_watch(const std::map<std::string, std::string>& values, const std::string& reason,
                                        const TuningWatchOptions& options, const TuningCallbacks& callbacks = {});
  /// Returns the tuner's changes and the reverts of them, oldest first.
  Result<std::vector<AppliedTuning>> history();
  /// Gives the settings of a change their previous values. Errors: NotFound; InvalidArgument with Status::setting() if
  /// a later change has changed one of them.
  Result<AppliedTuning> revert(const std::string& id);

  /// Reads the metrics in each period and changes settings within the limits of the options, until a stop request or
  /// the last period. Only one run per cluster: two take each other's changes for manual ones. Errors: InvalidArgument.
  Status run(const AutoTuneOptions& options, const TuningCallbacks& callbacks = {});

 private:
  ClientCore* core_;
};

}  // namespace fjord
