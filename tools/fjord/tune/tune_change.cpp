#include "tune/tune_change.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "fjord/common/byte_units.h"
#include "fjord/common/hash.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using tuner::KnobPlace;

constexpr std::string_view kPrefix = "tune-";
constexpr std::size_t kIdLength = 13;

std::map<std::string, std::string> values_of(const rpc::ConfigChange& version) {
  std::map<std::string, std::string> values;
  for (const std::string& text : version.values) {
    const std::size_t at = text.find('=');
    if (at != std::string::npos) values[text.substr(0, at)] = text.substr(at + 1);
  }
  return values;
}

std::vector<ValueChange> difference(const std::map<std::string, std::string>& before,
                                    const std::map<std::string, std::string>& after) {
  std::vector<ValueChange> changes;
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

void replay(const std::vector<rpc::ConfigChange>& versions, HistoryClock& clock, tuner::GuardRails& rails) {
  for (const AppliedChange& applied : applied_changes(versions)) {
    clock.set(applied.unix_us);
    for (const ValueChange& value : applied.values) {
      tuner::Change change;
      change.knob = tuner::find_knob(value.name);
      if (change.knob != nullptr) rails.made(change);
    }
  }
}

TunePlan plan_changes(const tuner::Workload& workload, const tuner::Report& report,
                      const tuner::ClusterCondition& condition, const std::vector<rpc::ConfigChange>& versions,
                      std::int64_t now_us, const std::vector<std::string>& only) {
  HistoryClock clock;
  tuner::GuardRails rails({}, clock);
  replay(versions, clock, rails);
  clock.set(now_us);
  TunePlan plan;
  for (const tuner::Advice& advice : report.advice) {
    const tuner::Knob& knob = *advice.knob;
    const bool is_asked_for = only.empty() || std::find(only.begin(), only.end(), knob.name) != only.end();
    if (!is_asked_for) continue;
    PlannedChange planned;
    planned.knob = &knob;
    planned.old_text = tuner::value_text(knob, advice.old_value);
    planned.new_text = tuner::value_text(knob, advice.new_value);
    planned.reason = advice.reason;
    if (advice.effect) {
      planned.effect = fmt::format("{:+.1f} % ({:+.1f} to {:+.1f})", 100 * (advice.effect->gain - 1),
                                   100 * (advice.effect->low - 1), 100 * (advice.effect->high - 1));
    }
    planned.moved_bytes = moved_bytes_of(knob, workload);
    if (knob.place != KnobPlace::Live) {
      planned.why_not = knob.place == KnobPlace::File
                            ? "in the configuration file, by hand; takes effect with the next start"
                            : "an option of `fjord job run`";
    } else {
      tuner::Change change{
          &knob, advice.old_value, advice.new_value, advice.effect ? advice.effect->gain : 1, planned.moved_bytes, 0};
      const bool is_memory = knob.name == "storage.held_bytes_max" || knob.name == "storage.index_bytes_max";
      if (is_memory) change.memory_bytes = static_cast<double>(advice.new_value - advice.old_value);
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
  plan.seconds =
      plan.moved_bytes / static_cast<double>(std::max<std::int64_t>(1, report.after.maintenance_bytes_per_s));
  return plan;
}

std::string plan_text(const TunePlan& plan) {
  if (plan.changes.empty()) return "nothing to change\n";
  std::string text;
  for (const PlannedChange& change : plan.changes) {
    text += fmt::format("{} {}: {} -> {}{}\n", change.may_be_applied ? '+' : '-', change.knob->name, change.old_text,
                        change.new_text, change.effect.empty() ? "" : "   predicted " + change.effect);
    if (!change.may_be_applied) text += fmt::format("    not applied: {}\n", change.why_not);
  }
  text += plan.moved_bytes > 0
              ? fmt::format("moves {} on each node, {:.0f} s at least\n", bytes_text(plan.moved_bytes), plan.seconds)
              : "moves nothing: files and buckets follow when they are next written to\n";
  return text;
}

std::string plan_json(const TunePlan& plan, const std::string& inputs) {
  JsonText json;
  json.begin_object().key("inputs").raw(inputs).key("changes").begin_array();
  for (const PlannedChange& change : plan.changes) {
    json.begin_object().key("knob").text(change.knob->name).key("old").text(change.old_text);
    json.key("new").text(change.new_text).key("reason").text(change.reason).key("effect").text(change.effect);
    json.key("applies").boolean(change.may_be_applied).key("why_not").text(change.why_not);
    json.key("moved_bytes").real(change.moved_bytes, 0).end_object();
  }
  json.end_array().key("moved_bytes").real(plan.moved_bytes, 0).key("seconds").real(plan.seconds, 1).end_object();
  return json.str();
}

std::string change_id(const std::vector<std::string>& assignments, std::int64_t now_us) {
  std::uint64_t hash = static_cast<std::uint64_t>(now_us);
  for (const std::string& text : assignments) hash = hash64(text, hash);
  return fmt::format("{}{:08x}", kPrefix, static_cast<std::uint32_t>(hash ^ (hash >> 32)));
}

std::vector<AppliedChange> applied_changes(const std::vector<rpc::ConfigChange>& versions) {
  std::vector<AppliedChange> changes;
  std::map<std::string, std::string> before;
  for (const rpc::ConfigChange& version : versions) {
    std::map<std::string, std::string> after = values_of(version);
    if (version.who.starts_with(kPrefix) && version.who.size() >= kIdLength) {
      changes.push_back(
          {version.who.substr(0, kIdLength), version.version, version.unix_us, version.who, difference(before, after)});
    }
    before = std::move(after);
  }
  return changes;
}

Result<rpc::ChangeConfig> revert_request(const std::vector<rpc::ConfigChange>& versions, const std::string& id) {
  const std::vector<AppliedChange> all = applied_changes(versions);
  const auto found = std::find_if(all.begin(), all.end(), [&](const AppliedChange& one) { return one.id == id; });
  if (found == all.end()) {
    return Status(StatusCode::NotFound, "there is no change " + id + "; `fjord tune history` shows all");
  }
  const std::map<std::string, std::string> now = values_of(versions.back());
  rpc::ChangeConfig request;
  for (const ValueChange& value : found->values) {
    const auto current = now.find(value.name);
    if ((current == now.end() ? "" : current->second) != value.after) {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("{} was changed again since; set it with `fjord config set`", value.name));
    }
    if (value.before.empty()) {
      request.unset.push_back(value.name);
    } else {
      request.set.push_back(value.name + "=" + value.before);
    }
  }
  return request;
}

namespace {

void set_or_unset(rpc::ChangeConfig& request, const std::string& name, const std::string& value) {
  if (value.empty()) {
    request.unset.push_back(name);
  } else {
    request.set.push_back(name + "=" + value);
  }
}

}  // namespace

Result<rpc::ChangeConfig> revert_setting_request(const std::vector<rpc::ConfigChange>& versions,
                                                 const std::string& first_id, std::string_view setting) {
  rpc::ChangeConfig request;
  for (const AppliedChange& change : applied_changes(versions)) {
    if (change.id != first_id) continue;
    for (const ValueChange& value : change.values) {
      if (value.name != setting) continue;
      set_or_unset(request, value.name, value.before);
      return request;
    }
  }
  return Status(StatusCode::NotFound, fmt::format("there is no change {} of {}", first_id, setting));
}

}  // namespace fjord::cli
