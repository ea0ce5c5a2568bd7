#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/library/configuration.h"
#include "fjord/library/tuning.h"
#include "fjord/tuner/guard_rails.h"

/// Changes of the live configuration by the tuner. All functions are pure. A change is recognised by the author of its
/// configuration version: the author's text begins with the id of the change, "tune-" and eight digits. That of a
/// revert begins with "revert of " and the id.
namespace fjord {

/// New values by name of the setting; an empty value restores the default.
using SettingTexts = std::map<std::string, std::string>;

/// Returns the advice as changes of a running cluster, each with the verdict of the guard rails at `now_us`. `only` has
/// the names of the wanted settings; empty: all.
TuningPlan plan_changes(TuningAdvice advice, const tuner::ClusterCondition& condition,
                        const std::vector<ConfigurationVersion>& versions, std::int64_t now_us,
                        const std::vector<std::string>& only);

std::string tuning_id(const SettingTexts& values, std::int64_t now_us);

/// Returns what a revert of this change writes as its author.
std::string revert_tag(const std::string& id);

/// Returns the tuner's changes and the reverts of them, oldest first.
std::vector<AppliedTuning> tuning_history(const std::vector<ConfigurationVersion>& versions);
/// Returns the tuner's changes without reverts, oldest first.
std::vector<AppliedTuning> applied_tunings(const std::vector<ConfigurationVersion>& versions);

/// Returns what reverts a change: its settings get their previous values, others stay.
/// Errors: NotFound; InvalidArgument that names a setting that a later change has changed.
Result<SettingTexts> values_before(const std::vector<ConfigurationVersion>& versions, const std::string& id);

/// Returns what reverts one setting to its value before the change `first_id`, the first of several.
/// Errors: NotFound if the history no longer has that change.
Result<SettingTexts> value_before(const std::vector<ConfigurationVersion>& versions, const std::string& first_id,
                                  std::string_view setting);

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
void replay(const std::vector<ConfigurationVersion>& versions, HistoryClock& clock, tuner::GuardRails& rails);

}  // namespace fjord
