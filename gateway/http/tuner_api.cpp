// /cluster/v1/tuner: advice on settings, and the changes that follow it.

#include <utility>

#include "fjord/library/admin.h"
#include "fjord/tuner/effect_text.h"
#include "http/json_shape.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

constexpr Duration kSampleMax = seconds(60);

std::string_view knob_place_text(tuner::KnobPlace place) {
  switch (place) {
    case tuner::KnobPlace::Live:
      return "live";
    case tuner::KnobPlace::File:
      return "file";
    case tuner::KnobPlace::JobOption:
      return "job";
  }
  return "";
}

void write_inputs(const std::vector<tuner::Input>& inputs, JsonText& json) {
  json.key("inputs").begin_array();
  for (const tuner::Input& input : inputs) {
    json.begin_object().member("name", input.name).member("value", input.value).member("unit", input.unit);
    json.member("origin", input.origin).end_object();
  }
  json.end_array();
}

void write_prediction(std::string_view name, const tuner::Prediction& prediction, JsonText& json) {
  json.key(name).begin_object().member("operations_per_s", prediction.operations_per_s);
  json.member("scan_bytes_per_s", prediction.scan_bytes_per_s).member("p99_seconds", prediction.p99_s);
  json.member("node_memory_bytes", prediction.node_memory_bytes).member("fits", prediction.fits);
  json.member("binding", prediction.binding).member("objective", prediction.objective).end_object();
}

void write_effect(const tuner::Effect& effect, JsonText& json) {
  json.key("effect").begin_object().member("gain", effect.gain).member("low", effect.low).member("high", effect.high);
  json.member("sensitive_to", tuner::declaration_of(effect.sensitive_to).name);
  json.member("p99_before_seconds", effect.p99_before_s).member("p99_after_seconds", effect.p99_after_s);
  json.member("reaches_target", effect.reaches_target).member("text", tuner::effect_text(effect)).end_object();
}

void write_advice(const tuner::Advice& advice, const PlannedChange* change, JsonText& json) {
  const tuner::Knob& knob = *advice.knob;
  json.begin_object().member("name", knob.name).member("old", advice.old_value).member("new", advice.new_value);
  json.member("old_text", tuner::value_text(knob, advice.old_value));
  json.member("new_text", tuner::value_text(knob, advice.new_value)).member("place", knob_place_text(knob.place));
  json.member("structural", knob.structural).member("reason", advice.reason).member("source", advice.source);
  json.member("formula", advice.formula);
  write_inputs(advice.inputs, json);
  json.member("binding", advice.binding).key("flips").begin_array();
  for (const tuner::Flip& flip : advice.flips) {
    json.begin_object().member("input", flip.input).member("value", flip.value).member("advice", flip.advice);
    json.end_object();
  }
  json.end_array();
  if (advice.effect) {
    write_effect(*advice.effect, json);
  } else {
    json.key("effect").null();
  }
  json.member("may_be_applied", change != nullptr && change->may_be_applied);
  json.member("why_not", change == nullptr ? "it was not asked for" : change->why_not.c_str());
  json.member("moved_bytes", change == nullptr ? 0.0 : change->moved_bytes).end_object();
}

void write_report(const TuningPlan& plan, JsonText& json) {
  const tuner::Report& report = plan.advice.report;
  json.begin_object();
  write_inputs(plan.advice.inputs, json);
  write_prediction("predicted_before", report.predicted_before, json);
  write_prediction("predicted_after", report.predicted_after, json);
  write_effect(report.effect, json);
  json.key("advice").begin_array();
  for (const tuner::Advice& advice : report.advice) {
    const PlannedChange* planned = nullptr;
    for (const PlannedChange& change : plan.changes) {
      if (change.knob == advice.knob) planned = &change;
    }
    write_advice(advice, planned, json);
  }
  json.end_array().key("kept").begin_array();
  for (const tuner::Kept& kept : report.kept) {
    json.begin_object().member("name", kept.knob->name).member("value_text", tuner::value_text(*kept.knob, kept.value));
    json.member("considered_text", tuner::value_text(*kept.knob, kept.considered)).member("why", kept.why).end_object();
  }
  json.end_array().key("figures").begin_array();
  for (const tuner::Figure& figure : report.figures) {
    json.begin_object().member("name", figure.name).member("value", figure.value).member("unit", figure.unit);
    json.member("source", figure.source).member("formula", figure.formula).end_object();
  }
  json.end_array().member("warnings", report.warnings).member("moved_bytes", plan.moved_bytes);
  json.member("moved_seconds", plan.seconds).end_object();
}

void advise(Client& client, const std::vector<std::string>& metrics, const ApiCall& call, const HttpReply& reply) {
  TuningSource source;
  source.metrics = metrics;
  source.stop = stop_of(reply);
  const auto sample = call.duration("sample", source.sample);
  if (!sample) return reply(error_answer(call.request, sample.error()));
  if (*sample > kSampleMax) {
    return reply(error_answer(
        call.request,
        {StatusCode::InvalidArgument, "request property 'sample': expected at most 60s", {.limit = "60s"}}));
  }
  source.sample = *sample;
  const auto plan = client.admin().tuning().plan(source, call.words("only"));
  if (!plan) return reply(error_answer(call.request, plan.error()));
  JsonText json;
  write_report(*plan, json);
  reply({.status = 200, .body = json.str()});
}

void write_applied(const AppliedTuning& applied, JsonText& json) {
  json.begin_object().member("id", applied.id).member("is_revert", applied.is_revert);
  json.member("version", applied.version).member("unix_us", applied.unix_us);
  json.member("who", applied.who).key("values").begin_array();
  for (const AppliedTuning::Value& value : applied.values) {
    json.begin_object().member("name", value.name).member("before", value.before).member("after", value.after);
    json.end_object();
  }
  json.end_array().end_object();
}

Status apply_tuning(Client& client, const std::string& body, JsonText& json) {
  std::map<std::string, std::string> values;
  std::string reason;
  FJORD_TRY(read_json(body, JsonShape().text_map("values", values).text("reason", reason).required("values")));
  if (values.empty()) return {StatusCode::InvalidArgument, "the body: \"values\": expected at least one setting"};
  Tuning tuning = client.admin().tuning();
  FJORD_TRY_ASSIGN(AppliedTuning applied, tuning.apply(values, reason));
  // The history knows the values before.
  FJORD_TRY_ASSIGN(const std::vector<AppliedTuning> history, tuning.history());
  for (const AppliedTuning& one : history) {
    if (one.id == applied.id) applied = one;
  }
  write_applied(applied, json);
  return Status::ok();
}

Status list_changes(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<AppliedTuning> history, client.admin().tuning().history());
  json.begin_object().key("changes").begin_array();
  for (const AppliedTuning& applied : history) write_applied(applied, json);
  json.end_array().end_object();
  return Status::ok();
}

Status revert_tuning(Client& client, const std::string& body, JsonText& json) {
  std::string id;
  FJORD_TRY(read_json(body, JsonShape().text("id", id).required("id")));
  FJORD_TRY_ASSIGN(const AppliedTuning reverted, client.admin().tuning().revert(id));
  write_applied(reverted, json);
  return Status::ok();
}

}  // namespace

void add_tuner_routes(RouteTable& routes, Client& client, std::vector<std::string> metrics) {
  routes.add_streaming("GET", "/cluster/v1/tuner/advice", {"sample", "only"},
                       [&client, metrics = std::move(metrics)](const ApiCall& call, const HttpReply& reply) {
                         advise(client, metrics, call, reply);
                       });
  routes.add_waiting("POST", "/cluster/v1/tuner/apply", {}, [&client](const ApiCall& call, JsonText& json) {
    return apply_tuning(client, call.request.body, json);
  });
  routes.add_waiting("GET", "/cluster/v1/tuner/history", {},
                     [&client](const ApiCall&, JsonText& json) { return list_changes(client, json); });
  routes.add_waiting("POST", "/cluster/v1/tuner/revert", {}, [&client](const ApiCall& call, JsonText& json) {
    return revert_tuning(client, call.request.body, json);
  });
}

}  // namespace fjord::gateway
