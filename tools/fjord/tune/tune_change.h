#pragma once

#include <string>
#include <vector>

#include "fjord/rpc/messages.h"
#include "fjord/tuner/advisor.h"
#include "fjord/tuner/guard_rails.h"

/// Changes of the live configuration by the tuner. All functions are pure. The author of a configuration version
/// identifies such a change: that text begins with the id of the change, "tune-" and eight digits.
namespace fjord::cli {

struct PlannedChange {
  const tuner::Knob* knob = nullptr;
  std::string old_text;
  std::string new_text;
  std::string reason;
  std::string effect;  ///< Expected effect, "+12.0 % (+3.1 to +20.4)", or empty.
  bool may_be_applied = false;
  std::string why_not;
  double moved_bytes = 0;  ///< Bytes that each node rewrites or sends.
};

struct TunePlan {
  std::vector<PlannedChange> changes;
  double moved_bytes = 0;  ///< Bytes that the permitted changes move on each node.
  double seconds = 0;      ///< Duration of that movement at maintenance.bytes_per_s.
};

/// Returns the advice as changes of a running cluster, each with the verdict of the guard rails at `now_us`. `only` has
/// the names of the wanted settings; empty: all.
TunePlan plan_changes(const tuner::Workload& workload, const tuner::Report& report,
                      const tuner::ClusterCondition& condition, const std::vector<rpc::ConfigChange>& versions,
                      std::int64_t now_us, const std::vector<std::string>& only);
std::string plan_text(const TunePlan& plan);
/// `inputs` is a JSON text with the inputs of the advice.
std::string plan_json(const TunePlan& plan, const std::string& inputs);

std::string change_id(const std::vector<std::string>& assignments, std::int64_t now_us);

struct ValueChange {
  std::string name;
  std::string before;  ///< Empty: the default.
  std::string after;
};
struct AppliedChange {
  std::string id;
  std::uint64_t version = 0;
  std::int64_t unix_us = 0;
  std::string who;
  std::vector<ValueChange> values;
};
/// Returns the tuner's changes, oldest first.
std::vector<AppliedChange> applied_changes(const std::vector<rpc::ConfigChange>& versions);

/// Returns the request that reverts a change: its settings get their previous values, others stay.
/// Errors: NotFound; InvalidArgument that names a setting that a later change has changed.
Result<rpc::ChangeConfig> revert_request(const std::vector<rpc::ConfigChange>& versions, const std::string& id);

/// Returns the request that reverts one setting to its value before the change `first_id`, the first of several.
/// Errors: NotFound if the history no longer has that change.
Result<rpc::ChangeConfig> revert_setting_request(const std::vector<rpc::ConfigChange>& versions,
                                                 const std::string& first_id, std::string_view setting);

/// A clock that stands still at a set time, for replaying past changes into the guard rails.
class HistoryClock final : public Clock {
 public:
  MonotonicTime now() const override { return {us_}; }
  WallTime wall_now() const override { return {us_}; }
  void set(std::int64_t unix_us) { us_ = unix_us; }

 private:
  std::int64_t us_ = 0;
};
/// Replays the tuner's past changes into `rails`.
void replay(const std::vector<rpc::ConfigChange>& versions, HistoryClock& clock, tuner::GuardRails& rails);

}  // namespace fjord::cli
