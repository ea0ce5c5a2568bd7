#include "fjord/tuner/advisor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "fjord/common/byte_units.h"
#include "fjord/common/check.h"
#include "fjord/tuner/seed_formulas.h"

namespace fjord::tuner {
namespace {

/// The model predicts the ratio of the results of two settings; this is how wrong the ratio can be, apart from errors
/// of the profile. It is half of the possible error of a rate (15 %), because most of that error is in both results.
constexpr double kModelError = 0.075;
/// Least share by which a change must be predicted to improve the result (0.01: 1 %).
constexpr double kGainMin = 0.01;

std::string without_steps(std::string formula) {
  // Replaces step() by max(), which with one argument is the identity.
  for (std::size_t at = formula.find("step("); at != std::string::npos; at = formula.find("step(")) {
    formula.replace(at, 4, "max");
  }
  return formula;
}

std::vector<std::string> binding_of(const Advice& advice) {
  const std::string formula = without_steps(advice.formula);
  const Result<double> base = evaluate(formula, advice.inputs);
  std::vector<std::string> binding;
  if (!base) return binding;
  std::vector<Input> inputs = advice.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double kept = inputs[i].value;
    bool matters = false;
    for (const double factor : {1.05, 0.95}) {
      inputs[i].value = kept * factor;
      const Result<double> changed = evaluate(formula, inputs);
      matters = matters || (changed && std::abs(*changed - *base) > 0.002 * std::abs(*base));
    }
    inputs[i].value = kept;
    if (matters) binding.push_back(inputs[i].name);
  }
  return binding;
}

/// Returns up to three inputs, each with its nearest value for which the advice would differ; nearest first.
std::vector<Flip> flips_of(const Advice& advice) {
  std::vector<std::pair<double, Flip>> found;
  std::vector<Input> inputs = advice.inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double kept = inputs[i].value;
    if (kept == 0) continue;
    double nearest = 0;
    for (int step = 1; step <= 64 + 24 && nearest == 0; ++step) {
      // Steps of a sixteenth octave first, then of whole octaves.
      const double octaves = step <= 64 ? step / 16.0 : 4.0 + step - 64;
      for (const double direction : {1.0, -1.0}) {
        const double factor = std::exp2(direction * octaves);
        inputs[i].value = kept * factor;
        const Result<std::int64_t> value = value_of(*advice.knob, advice.formula, inputs);
        const bool is_other = value && std::abs(static_cast<double>(*value - advice.new_value)) >
                                           0.1 * static_cast<double>(advice.new_value);
        if (!is_other) continue;
        nearest = static_cast<double>(step);
        found.push_back({nearest, {inputs[i].name, inputs[i].value, *value}});
        break;
      }
    }
    inputs[i].value = kept;
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Flip> flips;
  for (const auto& [distance, flip] : found) {
    if (flips.size() < 3) flips.push_back(flip);
  }
  return flips;
}

/// Computes the effect of a change with its interval: varies each constant by its uncertainty, one after the other.
Effect effect_of(const Workload& w, const HardwareProfile& profile, const Settings& before, const Settings& after) {
  const auto gain = [&](const HardwareProfile& hw) {
    return predict(w, hw, after).objective / std::max(1e-12, predict(w, hw, before).objective);
  };
  Effect effect;
  effect.gain = gain(profile);
  effect.p99_before_s = predict(w, profile, before).p99_s;
  effect.p99_after_s = predict(w, profile, after).p99_s;
  effect.reaches_target = effect.p99_after_s <= w.latency_target_s;
  double up = kModelError * kModelError;
  double down = up;
  double strongest = -1;
  const double base = predict(w, profile, after).objective;
  for (const ConstantDeclaration& one : constant_declarations()) {
    const ConstantValue& value = profile.at(one.id);
    const double off = 0.05 + 0.5 * (1 - value.confidence);
    double sensitivity = 0;
    for (const double factor : {1 + off, 1 / (1 + off)}) {
      HardwareProfile other = profile;
      ConstantValue changed = value;
      changed.value *= factor;
      other.set(one.id, changed);
      const double difference = std::log(std::max(1e-12, gain(other) / effect.gain));
      (difference > 0 ? up : down) += difference * difference;
      sensitivity += std::abs(std::log(std::max(1e-12, predict(w, other, after).objective / base))) / std::log(1 + off);
    }
    if (sensitivity > strongest) strongest = sensitivity, effect.sensitive_to = one.id;
  }
  effect.low = effect.gain * std::exp(-std::sqrt(down));
  effect.high = effect.gain * std::exp(std::sqrt(up));
  return effect;
}

/// Returns whether the effect is a gain at every point of its interval.
bool is_worth_it(const Effect& effect) { return effect.gain > 1 + kGainMin && effect.low > 1; }

bool is_modelled(const Knob& knob) {
  static const std::set<std::string_view> names = {
      "storage.file_bytes_max",         "storage.entries_max",     "distributor.bucket_bytes_max",
      "distributor.bucket_entries_max", "storage.index_bytes_max", "storage.held_bytes_max",
      "storage_options.docblock_bytes", "storage.visitors_max",    "cluster.distribution_bits"};
  return names.contains(knob.name);
}

double ratio_of(std::int64_t a, std::int64_t b) {
  const double x = static_cast<double>(std::max<std::int64_t>(a, 1));
  const double y = static_cast<double>(std::max<std::int64_t>(b, 1));
  return std::max(x / y, y / x);
}

/// Returns what `after` takes away beyond the share that the workload permits; empty if it takes less.
std::string given_up(const Workload& w, const Prediction& before, const Prediction& after) {
  const double kept = 1 - w.give_up_max;
  const double operations = std::min(before.operations_per_s, w.operations_that_count());
  if (after.scan_bytes_per_s < kept * before.scan_bytes_per_s) {
    return fmt::format("visits would fall from {} to {} a second", bytes_text(before.scan_bytes_per_s),
                       bytes_text(after.scan_bytes_per_s));
  }
  if (after.operations_per_s < kept * operations) {
    return fmt::format("operations would fall from {:.0f} to {:.0f} a second", before.operations_per_s,
                       after.operations_per_s);
  }
  if (after.p99_s > w.latency_target_s && kept * after.p99_s > before.p99_s) {
    return fmt::format("p99 would rise from {:.3g} to {:.3g} ms", 1e3 * before.p99_s, 1e3 * after.p99_s);
  }
  return "";
}

/// Returns the reason not to take the candidate's value; empty if it should be taken.
std::string why_not(const Workload& w, const HardwareProfile& hw, const Settings& settings, const Advice& candidate) {
  Settings changed = settings;
  changed.*(candidate.knob->member) = candidate.new_value;
  if (!is_modelled(*candidate.knob)) {
    if (candidate.knob->place == KnobPlace::JobOption) return "";
    return ratio_of(candidate.old_value, candidate.new_value) >= 1.5 ? "" : "less than half as large again";
  }
  const Prediction now = predict(w, hw, settings);
  const Prediction then = predict(w, hw, changed);
  if (!now.fits && then.node_memory_bytes < now.node_memory_bytes) return "";
  if (now.fits && !then.fits) return "it would not fit in the memory of a node";
  if (std::string loss = given_up(w, predict(w, hw, w.current), then); !loss.empty()) return loss;
  const double gain = then.objective / std::max(1e-12, now.objective);
  if (gain >= 1 + kGainMin) return "";
  return fmt::format("the predicted gain is {:+.1f} %", 100 * (gain - 1));
}

/// Returns the reason why a value that is good alone is put back.
std::string why_put_back(const Workload& w, const HardwareProfile& hw, const Settings& settings,
                         const Advice& candidate) {
  Settings changed = settings;
  changed.*(candidate.knob->member) = candidate.new_value;
  const Effect effect = effect_of(w, hw, settings, changed);
  if (effect.gain <= 1 + kGainMin) return "beside the other changes it gains less than 1 %";
  const auto percent = [](double gain) { return 100 * (gain - 1); };
  return fmt::format("its predicted effect, {:+.1f} % ({:+.1f} to {:+.1f}), may be a loss", percent(effect.gain),
                     percent(effect.low), percent(effect.high));
}

const Advice* find(const std::vector<Advice>& all, const Knob* knob) {
  for (const Advice& one : all) {
    if (one.knob == knob) return &one;
  }
  return nullptr;
}

struct Choice {
  Settings settings;
  Tunings tunings;
};

/// Chooses the knobs one after the other, each with the values chosen before it. Repeats this, because some knobs
/// matter only together.
Choice choose(const Workload& w, const HardwareProfile& hw) {
  Choice chosen{w.current, {}};
  const Prediction current = predict(w, hw, w.current);
  const auto is_better = [&](const Knob& knob, const Settings& best, const Advice& candidate) {
    if (!is_modelled(knob)) return why_not(w, hw, best, candidate).empty();
    Settings other = best;
    other.*(knob.member) = candidate.new_value;
    const Prediction then = predict(w, hw, other);
    return then.objective > (1 + kGainMin) * predict(w, hw, best).objective && given_up(w, current, then).empty();
  };
  const std::vector<Advice> order = candidates(w, hw, chosen.settings, {});
  for (int round = 0; round < 4; ++round) {
    for (const Advice& slot : order) {
      const Knob& knob = *slot.knob;
      const bool has_tuning = is_modelled(knob) && slot.inputs.front().name == "tuned";
      Choice best = chosen;
      // Nearest to the rule first: among equally good values the nearest wins.
      for (const double tuning : {1.0, 0.5, 2.0, 0.25, 4.0, 0.125, 8.0, 0.0625, 16.0}) {
        if (!has_tuning && tuning != 1) break;
        Choice other = chosen;
        other.tunings[knob.name] = tuning;
        const std::vector<Advice> all = candidates(w, hw, other.settings, other.tunings);
        const Advice* candidate = find(all, &knob);
        other.settings.*(knob.member) = candidate->new_value;
        if (is_better(knob, best.settings, *candidate)) best = other;
      }
      chosen = best;
    }
  }
  // Puts a knob back to its old value if that costs almost nothing or the effect is uncertain. Repeats, because another
  // change can be worthwhile only together with the one put back.
  for (bool any = true; any;) {
    any = false;
    for (const Advice& slot : order) {
      Settings without = chosen.settings;
      without.*(slot.knob->member) = w.current.*(slot.knob->member);
      if (!is_modelled(*slot.knob) || without == chosen.settings) continue;
      if (is_worth_it(effect_of(w, hw, without, chosen.settings))) continue;
      if (!given_up(w, current, predict(w, hw, without)).empty()) continue;
      chosen.settings = without;
      any = true;
    }
  }
  return chosen;
}

/// Returns `chosen` with the values that the formulas give under all of its settings, as a later choice can have
/// changed an earlier value. A knob whose new value would take away too much, or does not settle, returns to its old
/// value.
Choice settled(const Workload& w, const HardwareProfile& hw, Choice chosen) {
  constexpr int kRounds = 8;
  const Prediction current = predict(w, hw, w.current);
  std::set<std::string_view> put_back;
  for (int round = 0, changed = 1; changed != 0; ++round) {
    changed = 0;
    for (const Advice& candidate : candidates(w, hw, chosen.settings, chosen.tunings)) {
      const Knob& knob = *candidate.knob;
      const std::int64_t old_value = w.current.*(knob.member);
      std::int64_t& value = chosen.settings.*(knob.member);
      if (value == old_value || put_back.contains(knob.name)) continue;
      const std::int64_t before = std::exchange(value, candidate.new_value);
      const bool settles = round < kRounds || value == before;
      if (is_modelled(knob) && (!settles || !given_up(w, current, predict(w, hw, chosen.settings)).empty())) {
        value = old_value;
        put_back.insert(knob.name);
      }
      changed += value != before ? 1 : 0;
    }
    if (round >= kRounds) break;
  }
  const bool is_kept = given_up(w, current, predict(w, hw, chosen.settings)).empty();
  return is_kept ? chosen : Choice{w.current, std::move(chosen.tunings)};
}

Figure figure(std::string name, std::string unit, std::string source, std::string formula, std::vector<Input> inputs) {
  Figure made{std::move(name), 0, std::move(unit), std::move(source), std::move(formula), std::move(inputs)};
  const Result<double> value = evaluate(made.formula, made.inputs);
  FJORD_CHECK(value.has_value());
  made.value = *value;
  return made;
}

std::vector<Figure> figures_of(const Workload& w, const HardwareProfile& hw, const NodeShape& shape) {
  const Input replicas{"replicas", static_cast<double>(w.redundancy), "", "workload"};
  const Input bytes{"document_bytes", w.document_bytes, "bytes", "workload"};
  const Input header{"header_bytes", traffic::kMessageHeaderBytes, "bytes", "VDS 2007, 6.4.1"};
  std::vector<Figure> all;
  const std::string put =
      "(replicas + 1) * (2 * header_bytes + document_bytes) + (replicas + 1) * (ceil(header_bytes / 1460) + "
      "ceil((header_bytes + document_bytes) / 1460)) * 58";
  all.push_back(figure("traffic of one put", "bytes", "VDS 2007, 6.4.1", put, {replicas, bytes, header}));
  all.push_back(figure("traffic of all writes, all nodes together", "bytes/s",
                       "VDS 2007, 6.4.1 with the margin of table 6.1",
                       fmt::format("{} * writes_per_s * ({})", seed::kTrafficMargin, put),
                       {replicas, bytes, header, {"writes_per_s", w.writes_per_s, "1/s", "workload"}}));
  all.push_back(
      figure("traffic of one get", "bytes", "seed E.3.1", "4 * header_bytes + 2 * document_bytes", {header, bytes}));
  all.push_back(figure("slotfiles of a bucket, at most", "", "VDS 2007, 5.5",
                       "2 * max(1, document_bytes * documents / buckets / file_bytes)",
                       {bytes,
                        {"documents", w.documents, "", "workload"},
                        {"buckets", shape.buckets_total, "", "VDS 2007, 5.4.2"},
                        {"file_bytes", shape.slotfile_bytes, "bytes", "VDS 2007, 5.5"}}));
  all.push_back(figure("removed documents are remembered for", "s", "practice", "2 * longest_absence_s",
                       {{"longest_absence_s", w.longest_absence_s, "s", "workload"}}));
  all.push_back(figure("imbalance of nodes by chance", "", "practice", "100 / max(1, buckets * replicas / nodes)",
                       {replicas,
                        {"buckets", shape.buckets_total, "", "VDS 2007, 5.4.2"},
                        {"nodes", static_cast<double>(w.nodes), "", "workload"}}));
  if (w.tuple_bytes_per_document <= 0) return all;
  const Input tuples{"tuple_bytes_per_document", w.tuple_bytes_per_document, "bytes", "workload"};
  const Input documents{"documents", w.documents, "", "workload"};
  const Input buckets{"buckets", shape.buckets_total, "", "VDS 2007, 5.4.2"};
  const Input rate{"job_rate", w.job_traffic_share * hw[Constant::NetworkRate] * static_cast<double>(w.nodes),
                   "bytes/s", "workload"};
  all.push_back(figure("tuples of one bucket in memory", "bytes", "VDS 2007, 4.3.4",
                       "documents / buckets * tuple_bytes_per_document", {documents, buckets, tuples}));
  all.push_back(figure("pause between buckets of a job", "s", "VDS 2007, 6.4.3",
                       "(replicas + 1) * documents * tuple_bytes_per_document / (job_rate * buckets)",
                       {replicas, documents, tuples, rate, buckets}));
  all.push_back(figure("token bucket of a job: rate", "bytes/s", "VDS 2007, 6.4.3", "job_rate", {rate}));
  all.push_back(figure("token bucket of a job: size", "bytes", "VDS 2007, 6.4.3, 4.3.4",
                       "(replicas + 1) * documents / buckets * tuple_bytes_per_document",
                       {replicas, documents, buckets, tuples}));
  all.push_back(figure("output documents", "bytes", "VDS 2007, 6.1.2", "output_document_bytes",
                       {{"output_document_bytes", seed::kOutputDocumentBytes, "bytes", "VDS 2007, 6.1.2"}}));
  return all;
}

std::vector<std::string> warnings_of(const Workload& w, const HardwareProfile& hw, const Report& report) {
  std::vector<std::string> warnings;
  if (!report.predicted_after.fits) {
    warnings.push_back(fmt::format("a node needs {} for caches and buffers and has {}",
                                   bytes_text(report.predicted_after.node_memory_bytes), bytes_text(w.memory_bytes)));
  }
  const double wanted = w.reads_per_s + w.writes_per_s;
  if (wanted > report.predicted_after.operations_per_s) {
    warnings.push_back(fmt::format("{:.0f} operations a second are wanted and {:.0f} predicted; {} is the limit",
                                   wanted, report.predicted_after.operations_per_s, report.predicted_after.binding));
  }
  if (report.predicted_after.p99_s > w.latency_target_s) {
    warnings.push_back(
        fmt::format("the target of {:.3g} ms cannot be reached with these settings and nodes: the predicted p99 under "
                    "full load is {:.3g} ms with this advice, {:.3g} ms as it is set; {} is the limit. Raise "
                    "operations.latency_target_ms or nodes.count",
                    1e3 * w.latency_target_s, 1e3 * report.predicted_after.p99_s, 1e3 * report.predicted_before.p99_s,
                    report.predicted_after.binding));
  }
  const double traffic = w.writes_per_s * traffic::put_traffic(static_cast<double>(w.redundancy), w.document_bytes) *
                         seed::kTrafficMargin / static_cast<double>(w.nodes);
  if (traffic > 0.7 * hw[Constant::NetworkRate]) {
    warnings.push_back(fmt::format("writes alone take {} a second of each node's network, which has {}",
                                   bytes_text(traffic), bytes_text(hw[Constant::NetworkRate])));
  }
  for (const ConstantDeclaration& one : constant_declarations()) {
    if (hw.at(one.id).origin == Origin::LastValid) {
      warnings.push_back(fmt::format("{} is an old value: {:g} was measured, which is not plausible", one.name,
                                     hw.at(one.id).rejected));
    }
  }
  return warnings;
}

}  // namespace

Report advise(const Workload& workload, const HardwareProfile& measured) {
  const HardwareProfile profile = workload.with_overrides(measured);
  Report report;
  report.before = workload.current;
  const Choice choice = settled(workload, profile, choose(workload, profile));
  report.after = choice.settings;
  report.predicted_before = predict(workload, profile, report.before);
  report.predicted_after = predict(workload, profile, report.after);
  if (report.predicted_after.objective < report.predicted_before.objective) {
    // Only knobs outside the model can cause this; those in the model never make the prediction worse.
    report.warnings.push_back("nothing better was found");
  }
  report.effect = effect_of(workload, profile, report.before, report.after);
  for (const Knob& knob : knobs()) {
    const std::vector<Advice> last = candidates(workload, profile, report.after, choice.tunings);
    const Advice* candidate = find(last, &knob);
    if (candidate == nullptr) continue;
    const std::int64_t old_value = report.before.*(knob.member);
    const std::int64_t chosen = report.after.*(knob.member);
    if (candidate->new_value == old_value) {
      report.after.*(knob.member) = old_value;
      continue;
    }
    if (chosen == old_value) {
      std::string why = why_not(workload, profile, report.after, *candidate);
      if (why.empty()) why = why_put_back(workload, profile, report.after, *candidate);
      report.kept.push_back({&knob, old_value, candidate->new_value, std::move(why)});
      continue;
    }
    Advice advice = *candidate;
    advice.old_value = old_value;
    report.after.*(knob.member) = advice.new_value;
    advice.binding = binding_of(advice);
    advice.flips = flips_of(advice);
    report.advice.push_back(std::move(advice));
  }
  // Predicts for the values that the shown formulas give: a later choice can have changed an earlier value
  // slightly.
  report.predicted_after = predict(workload, profile, report.after);
  for (Advice& advice : report.advice) {
    if (!is_modelled(*advice.knob)) continue;
    Settings without = report.after;
    without.*(advice.knob->member) = advice.old_value;
    advice.effect = effect_of(workload, profile, without, report.after);
  }
  std::stable_sort(report.advice.begin(), report.advice.end(), [](const Advice& a, const Advice& b) {
    return (a.effect ? a.effect->gain : 0) > (b.effect ? b.effect->gain : 0);
  });
  report.figures = figures_of(workload, profile, shape_of(workload, report.after));
  for (std::string& warning : warnings_of(workload, profile, report)) report.warnings.push_back(std::move(warning));
  return report;
}

}  // namespace fjord::tuner
