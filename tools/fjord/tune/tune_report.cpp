#include "tune/tune_report.h"

#include <fmt/format.h>

#include "fjord/common/byte_units.h"
#include "fjord/tuner/effect_text.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

using tuner::Advice;
using tuner::Figure;
using tuner::Input;
using tuner::KnobPlace;
using tuner::Report;

std::string_view place_text(KnobPlace place) {
  switch (place) {
    case KnobPlace::Live:
      return "fjord config set";
    case KnobPlace::File:
      return "configuration file, next start";
    case KnobPlace::JobOption:
      return "fjord job run";
  }
  return "";
}

std::string formula_inputs_text(const std::vector<Input>& inputs) {
  std::string text;
  for (const Input& input : inputs) {
    text += fmt::format("        {} = {:.6g}{}{} ({})\n", input.name, input.value, input.unit.empty() ? "" : " ",
                        input.unit, input.origin);
  }
  return text;
}

std::string advice_text(const Advice& advice) {
  const tuner::Knob& knob = *advice.knob;
  std::string text = fmt::format("  {}: {} -> {}   [{}]\n", knob.name, tuner::value_text(knob, advice.old_value),
                                 tuner::value_text(knob, advice.new_value), place_text(knob.place));
  text += fmt::format("      {}\n", advice.reason);
  if (advice.effect) {
    text += fmt::format("      predicted effect: {}; depends most on {}\n", tuner::effect_text(*advice.effect),
                        tuner::declaration_of(advice.effect->sensitive_to).name);
  }
  text += fmt::format("      formula ({}): {}\n", advice.source, advice.formula);
  text += formula_inputs_text(advice.inputs);
  text +=
      fmt::format("      bound by: {}\n", advice.binding.empty() ? "a bound of the setting"
                                                                 : fmt::format("{}", fmt::join(advice.binding, ", ")));
  for (const tuner::Flip& flip : advice.flips) {
    text += fmt::format("      with {} = {:.4g} it would be {}\n", flip.input, flip.value,
                        tuner::value_text(knob, flip.advice));
  }
  return text;
}

std::string prediction_text(const tuner::Prediction& p) {
  return fmt::format("{:.0f} operations/s, visits {}/s, p99 {:.1f} ms, {} of a node's memory; limit: {}",
                     p.operations_per_s, bytes_text(p.scan_bytes_per_s), 1e3 * p.p99_s, bytes_text(p.node_memory_bytes),
                     p.binding);
}

void add_inputs(JsonText& json, const std::vector<Input>& inputs) {
  json.key("inputs").begin_array();
  for (const Input& input : inputs) {
    json.begin_object().key("name").text(input.name).key("value").raw(fmt::format("{}", input.value));
    json.key("unit").text(input.unit).key("origin").text(input.origin).end_object();
  }
  json.end_array();
}

void add_effect(JsonText& json, const tuner::Effect& effect) {
  json.key("effect").begin_object().key("gain").real(effect.gain, 4).key("low").real(effect.low, 4);
  json.key("high").real(effect.high, 4).key("sensitive_to").text(tuner::declaration_of(effect.sensitive_to).name);
  json.key("p99_before_s").real(effect.p99_before_s, 6).key("p99_after_s").real(effect.p99_after_s, 6);
  json.key("reaches_target").boolean(effect.reaches_target).end_object();
}

void add_prediction(JsonText& json, std::string_view name, const tuner::Prediction& p) {
  json.key(name).begin_object().key("operations_per_s").real(p.operations_per_s, 1);
  json.key("scan_bytes_per_s").real(p.scan_bytes_per_s, 0).key("p99_s").real(p.p99_s, 6);
  json.key("node_memory_bytes").real(p.node_memory_bytes, 0).key("fits").boolean(p.fits);
  json.key("binding").text(p.binding).key("objective").real(p.objective, 3).end_object();
}

void add_advice(JsonText& json, const Advice& advice) {
  const tuner::Knob& knob = *advice.knob;
  json.begin_object().key("knob").text(knob.name).key("old").integer(advice.old_value);
  json.key("new").integer(advice.new_value).key("new_text").text(tuner::value_text(knob, advice.new_value));
  json.key("set_by").text(place_text(knob.place)).key("structural").boolean(knob.structural);
  json.key("reason").text(advice.reason).key("source").text(advice.source).key("formula").text(advice.formula);
  add_inputs(json, advice.inputs);
  json.key("binding").begin_array();
  for (const std::string& name : advice.binding) json.text(name);
  json.end_array().key("flips").begin_array();
  for (const tuner::Flip& flip : advice.flips) {
    json.begin_object().key("input").text(flip.input).key("value").raw(fmt::format("{}", flip.value));
    json.key("advice").integer(flip.advice).end_object();
  }
  json.end_array();
  if (advice.effect) add_effect(json, *advice.effect);
  json.end_object();
}

}  // namespace

std::string tune_report_text(const tuner::Workload& workload, const Report& report) {
  std::string text = fmt::format("{:.6g} documents of {} on {} nodes, {} replicas\n", workload.documents,
                                 bytes_text(workload.document_bytes), workload.nodes, workload.redundancy);
  text += "under full load, as it is set: " + prediction_text(report.predicted_before) + "\n";
  text += "with this advice:              " + prediction_text(report.predicted_after) + "\n";
  text += "predicted effect on the objective: " + tuner::effect_text(report.effect) + "\n";
  for (const std::string& warning : report.warnings) text += "! " + warning + "\n";
  text += report.advice.empty() ? "\nnothing to change\n" : "\nchanges\n";
  for (const Advice& advice : report.advice) text += advice_text(advice);
  if (!report.kept.empty()) text += "\nconsidered and left\n";
  for (const tuner::Kept& kept : report.kept) {
    text += fmt::format("  {}: {}, not {}: {}\n", kept.knob->name, tuner::value_text(*kept.knob, kept.value),
                        tuner::value_text(*kept.knob, kept.considered), kept.why);
  }
  text += "\nfigures\n";
  for (const Figure& figure : report.figures) {
    text += fmt::format("  {}: {:.5g}{}{}   ({}: {})\n", figure.name, figure.value, figure.unit.empty() ? "" : " ",
                        figure.unit, figure.source, figure.formula);
  }
  return text;
}

std::string inputs_text(const std::vector<Input>& inputs) {
  std::string text;
  for (const Input& input : inputs) {
    text += fmt::format("{}: {:.5g}{}{} ({})\n", input.name, input.value, input.unit.empty() ? "" : " ", input.unit,
                        input.origin);
  }
  return text;
}

std::string tune_report_json(const tuner::Workload& workload, const Report& report, const std::vector<Input>& inputs) {
  JsonText json;
  json.begin_object();
  add_inputs(json, inputs);
  json.key("documents").real(workload.documents, 0).key("nodes").integer(workload.nodes);
  add_prediction(json, "predicted_before", report.predicted_before);
  add_prediction(json, "predicted_after", report.predicted_after);
  add_effect(json, report.effect);
  json.key("advice").begin_array();
  for (const Advice& advice : report.advice) add_advice(json, advice);
  json.end_array().key("kept").begin_array();
  for (const tuner::Kept& kept : report.kept) {
    json.begin_object().key("knob").text(kept.knob->name).key("value").integer(kept.value);
    json.key("considered").integer(kept.considered).key("why").text(kept.why).end_object();
  }
  json.end_array().key("figures").begin_array();
  for (const Figure& figure : report.figures) {
    json.begin_object().key("name").text(figure.name).key("value").raw(fmt::format("{}", figure.value));
    json.key("unit").text(figure.unit).key("source").text(figure.source).key("formula").text(figure.formula);
    add_inputs(json, figure.inputs);
    json.end_object();
  }
  json.end_array().key("warnings").begin_array();
  for (const std::string& warning : report.warnings) json.text(warning);
  json.end_array().end_object();
  return json.str() + "\n";
}

std::string plan_text(const TuningPlan& plan) {
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
  for (const std::string& warning : plan.advice.report.warnings) text += fmt::format("! {}\n", warning);
  return text;
}

std::string plan_json(const TuningPlan& plan) {
  JsonText json;
  json.begin_object();
  add_inputs(json, plan.advice.inputs);
  json.key("changes").begin_array();
  for (const PlannedChange& change : plan.changes) {
    json.begin_object().key("knob").text(change.knob->name).key("old").text(change.old_text);
    json.key("new").text(change.new_text).key("reason").text(change.reason).key("effect").text(change.effect);
    json.key("applies").boolean(change.may_be_applied).key("why_not").text(change.why_not);
    json.key("moved_bytes").real(change.moved_bytes, 0).end_object();
  }
  json.end_array().key("moved_bytes").real(plan.moved_bytes, 0).key("seconds").real(plan.seconds, 1);
  json.key("warnings").begin_array();
  for (const std::string& warning : plan.advice.report.warnings) json.text(warning);
  json.end_array().end_object();
  return json.str();
}

}  // namespace fjord::cli
