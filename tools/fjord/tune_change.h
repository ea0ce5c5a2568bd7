#pragma once

#include <string>
#include <vector>

#include "fjord/rpc/messages.h"
#include "fjord/tuner/advisor.h"
#include "fjord/tuner/guard_rails.h"

/// Changes of the live configuration by the tuner. All pure. They are found again by who made them: the text
/// begins with the id of the change, "tune-" and eight digits.
namespace fjord::cli {

struct PlannedChange {
  const tuner::Knob* knob = nullptr;
  std::string old_text;
  std::string new_text;
  std::string reason;
  std::string effect;  ///< "+12.0 % (+3.1 to +20.4)", or empty.
  bool may_be_applied = false;
  std::string why_not;
  double moved_bytes = 0;  ///< On each node, written anew or sent.
};

struct TunePlan {
  std::vector<PlannedChange> changes;
  double moved_bytes = 0;  ///< By what may be applied, on each node.
  double seconds = 0;      ///< That takes at maintenance.bytes_per_s.
};

/// The advice as changes of a running cluster, with what the guard rails say of each at `now_us`. `only`: names; empty:
/// all.
TunePlan plan_changes(const tuner::Workload& workload, const tuner::Report& report,
                      const tuner::ClusterCondition& condition, const std::vector<rpc::ConfigChange>& versions,
                      std::int64_t now_us, const std::vector<std::string>& only);
std::string plan_text(const TunePlan& plan);
/// `inputs`: JSON, of what the advice is based on.
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
/// Those of the tuner, oldest first.
std::vector<AppliedChange> applied_changes(const std::vector<rpc::ConfigChange>& versions);

/// What takes a change back: the settings that it changed get the values from before it, others stay.
/// Errors: NotFound; InvalidArgument if one of them was changed again since, named.
Result<rpc::ChangeConfig> revert_request(const std::vector<rpc::ConfigChange>& versions, const std::string& id);

/// Takes back one setting of several changes in a row: it gets the value from before the first of them.
/// Errors: NotFound if that change is not in the history any more.
Result<rpc::ChangeConfig> revert_setting_request(const std::vector<rpc::ConfigChange>& versions,
                                                 const std::string& first_id, std::string_view setting);

/// A clock that stands where it is put, so that changes of the past can be replayed into the guard rails.
class HistoryClock final : public Clock {
 public:
  MonotonicTime now() const override { return {us_}; }
  WallTime wall_now() const override { return {us_}; }
  void set(std::int64_t unix_us) { us_ = unix_us; }

 private:
  std::int64_t us_ = 0;
};
/// Notes what the tuner has done so far.
void replay(const std::vector<rpc::ConfigChange>& versions, HistoryClock& clock, tuner::GuardRails& rails);

}  // namespace fjord::cli
