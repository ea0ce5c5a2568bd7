#include "tuning_changes.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "fjord/common/hash.h"
#include "fjord/tuner/effect_text.h"

namespace fjord {
namespace {

using tuner::KnobPlace;

constexpr std::string_view kPrefix = "tune-";
constexpr std::size_t kIdLength = 13;
constexpr std::string_view kRevertPrefix = "revert of ";

SettingTexts values_of(const ConfigurationVersion& version) {
  SettingTexts values;
  for (const std::string& text : version.values) {
    const std::size_t at = text.find('=');
    if (at != std::string::npos) values[text.substr(0, at)] = text.substr(at + 1);
  }
  return values;
}

std::vector<AppliedTuning::Value> difference(const SettingTexts& before, const SettingTexts& after) {
  std::vector<AppliedTuning::Value> changes;
  for (const auto& [name, value] : after) {
    const auto old = before.find(name);
    if (old == before.end() || old->second != value) {
      changes.push_back({name, old == before.end() ? "" : old->second, value});
    }
  }
  for (const auto& [name, value] : before) {
    if (!after.contains(name)) changes.push_back({name, value, ""});
  }
  return changes;
}

/// Returns the bytes that each node rewrites or sends at once because of a change. Most settings move nothing at once:
/// slotfiles and buckets follow at their next write.
double moved_bytes_of(const tuner::Knob& knob, const tuner::Workload& workload) {
  // With more bits, parts of the buckets get other ideal nodes; about 1 / nodes of the replicas stay in place.
  if (knob.name == "cluster.distribution_bits") {
    return workload.bytes_per_node() * (1 - 1 / static_cast<double>(workload.nodes));
  }
  return 0;
}

}  // namespace

void replay(const std::vector<ConfigurationVersion>& versions, HistoryClock& clock, tuner::GuardRails& rails) {
  for (const AppliedTuning& applied : applied_tunings(versions)) {
    clock.set(applied.unix_us);
    for (const AppliedTuning::Value& value : applied.values) {
      tuner::Change change;
      change.knob = tuner::find_knob(value.name);
      if (change.knob != nullptr) rails.made(change);
    }
  }
}

TuningPlan plan_changes(TuningAdvice advice, const tuner::ClusterCondition& condition,
                        const std::vector<ConfigurationVersion>& versions, std::int64_t now_us,
                        const std::vector<std::string>& only) {
  HistoryClock clock;
  tuner::GuardRails rails({}, clock);
  replay(versions, clock, rails);
  clock.set(now_us);
  TuningPlan plan;
  plan.advice = std::move(advice);
  for (const tuner::Advice& advised : plan.advice.report.advice) {
    const tuner::Knob& knob = *advised.knob;
    const bool is_asked_for = only.empty() || std::find(only.begin(), only.end(), knob.name) != only.end();
    if (!is_asked_for) continue;
    PlannedChange planned;
    planned.knob = &knob;
    planned.old_text = tuner::value_text(knob, advised.old_value);
    planned.new_text = tuner::value_text(knob, advised.new_value);
    planned.reason = advised.reason;
    if (advised.effect) planned.effect = tuner::effect_text(*advised.effect);
    planned.moved_bytes = moved_bytes_of(knob, plan.advice.workload);
    if (knob.place != KnobPlace::Live) {
      planned.why_not = knob.place == KnobPlace::File
                            ? "in the configuration file, by hand; takes effect with the next start"
                            : "an option of `fjord job run`";
    } else {
      tuner::Change change{
          &knob, advised.old_value, advised.new_value, advised.effect ? advised.effect->gain : 1, planned.moved_bytes,
          0};
      const bool is_memory = knob.name == "storage.held_bytes_max" || knob.name == "storage.index_bytes_max";
      if (is_memory) change.memory_bytes = static_cast<double>(advised.new_value - advised.old_value);
      const Status allowed = rails.check(change, condition);
      planned.may_be_applied = allowed.is_ok();
      planned.why_not = allowed.message();
      if (allowed) {
        rails.made(change);
        plan.moved_bytes += planned.moved_bytes;
      }
    }
    plan.changes.push_back(std::move(planned));
  }
  plan.seconds = plan.moved_bytes /
                 static_cast<double>(std::max<std::int64_t>(1, plan.advice.report.after.maintenance_bytes_per_s));
  return plan;
}

std::map<std::string, std::string> TuningPlan::values() const {
  SettingTexts values;
  for (const PlannedChange& change : changes) {
    if (change.may_be_applied) values[std::string(change.knob->name)] = change.new_text;
  }
  return values;
}

std::string tuning_id(const SettingTexts& values, std::int64_t now_us) {
  std::uint64_t hash = static_cast<std::uint64_t>(now_us);
  for (const auto& [name, value] : values) hash = hash64(name + "=" + value, hash);
  return fmt::format("{}{:08x}", kPrefix, static_cast<std::uint32_t>(hash ^ (hash >> 32)));
}

std::string revert_tag(const std::string& id) { return std::string(kRevertPrefix) + id; }

std::vector<AppliedTuning> tuning_history(const std::vector<ConfigurationVersion>& versions) {
  std::vector<AppliedTuning> changes;
  SettingTexts before;
  for (const ConfigurationVersion& version : versions) {
    SettingTexts after = values_of(version);
    std::string_view text = version.who;
    const bool is_revert = text.starts_with(kRevertPrefix);
    if (is_revert) text.remove_prefix(kRevertPrefix.size());
    if (text.starts_with(kPrefix) && text.size() >= kIdLength) {
      changes.push_back({.id = std::string(text.substr(0, kIdLength)),
                         .is_revert = is_revert,
                         .version = version.version,
                         .unix_us = version.unix_us,
                         .who = version.who,
                         .values = difference(before, after)});
    }
    before = std::move(after);
  }
  return changes;
}

std::vector<AppliedTuning> applied_tunings(const std::vector<ConfigurationVersion>& versions) {
  std::vector<AppliedTuning> changes = tuning_history(versions);
  std::erase_if(changes, [](const AppliedTuning& one) { return one.is_revert; });
  return changes;
}

Result<SettingTexts> values_before(const std::vector<ConfigurationVersion>& versions, const std::string& id) {
  const std::vector<AppliedTuning> all = applied_tunings(versions);
  const auto found = std::find_if(all.begin(), all.end(), [&](const AppliedTuning& one) { return one.id == id; });
  if (found == all.end()) {
    return Status(StatusCode::NotFound, "there is no change " + id + "; `fjord tune history` shows all");
  }
  const SettingTexts now = values_of(versions.back());
  SettingTexts before;
  for (const AppliedTuning::Value& value : found->values) {
    const auto current = now.find(value.name);
    if ((current == now.end() ? "" : current->second) != value.after) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("{} was changed again since; set it with `fjord config set`", value.name),
                    {.setting = value.name});
    }
    before[value.name] = value.before;
  }
  return before;
}

Result<SettingTexts> value_before(const std::vector<ConfigurationVersion>& versions, const std::string& first_id,
                                  std::string_view setting) {
  for (const AppliedTuning& change : applied_tunings(versions)) {
    if (change.id != first_id) continue;
    for (const AppliedTuning::Value& value : change.values) {
      if (value.name == setting) return SettingTexts{{value.name, value.before}};
    }
  }
  return Status(StatusCode::NotFound, fmt::format("there is no change {} of {}", first_id, setting));
}

}  // namespace fjord
