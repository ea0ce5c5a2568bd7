// Jobs in JSON: what is submitted, and what is known of them.

#include "http/job_request.h"

#include <fmt/format.h>
#include <list>
#include <optional>
#include <utility>

#include "http/route_table.h"

namespace fjord::gateway {
namespace {

/// One pass as it is read: exactly one of the first three is there.
struct PassBody {
  std::string application;
  std::string script;
  std::optional<AggregateRequest> aggregation;
  std::string type;
  std::string selection;
  std::map<std::string, std::string> parameters;
  JobTarget into;
};

JsonShape shape_of(PassBody& pass) {
  return JsonShape()
      .text("application", pass.application)
      .text("script", pass.script)
      .object("aggregation", [&pass] { return aggregation_shape(pass.aggregation.emplace()); })
      .text("type", pass.type)
      .text("selection", pass.selection)
      .text_map("parameters", pass.parameters)
      .object("into", JsonShape()
                          .text("type", pass.into.type)
                          .text("namespace", pass.into.name_space)
                          .text("name", pass.into.name)
                          .required("type"));
}

Status wrong_pass(std::size_t pass, std::string_view what) {
  return {StatusCode::InvalidArgument, fmt::format("the body: \"passes.{}\": {}", pass, what)};
}

Result<JobPassRequest> pass_of(PassBody body, std::size_t number) {
  const bool has_script = !body.script.empty();
  if ((body.application.empty() ? 0 : 1) + (has_script ? 1 : 0) + (body.aggregation ? 1 : 0) != 1) {
    return wrong_pass(number, "expected exactly one of application, script and aggregation");
  }
  if (body.aggregation) {
    if (!body.type.empty() || !body.selection.empty() || !body.parameters.empty() || !body.into.type.empty()) {
      return wrong_pass(number, "type, selection and into of an aggregation stand in it, and it has no parameters");
    }
    return JobPassRequest::of_aggregation(std::move(*body.aggregation));
  }
  JobPassRequest pass = has_script
                            ? JobPassRequest::of_script(std::move(body.script), body.type, body.selection)
                            : JobPassRequest::of_application(std::move(body.application), body.type, body.selection);
  pass.parameters.merge(body.parameters);
  if (!body.parameters.empty()) {
    return wrong_pass(number, fmt::format("the parameter \"{}\" is there twice", body.parameters.begin()->first));
  }
  pass.into = std::move(body.into);
  return pass;
}

Status set_number(std::string_view name, std::uint64_t given, std::uint32_t& to) {
  constexpr std::uint64_t kMax = 1'000'000;
  if (given > kMax) {
    return {StatusCode::InvalidArgument,
            fmt::format("the body: \"{}\": expected a whole number from 0 to {}", name, kMax)};
  }
  to = static_cast<std::uint32_t>(given);
  return Status::ok();
}

void write_pass(const JobPassInfo& pass, JsonText& json) {
  json.begin_object().member("state", pass.state).member("application", pass.application).member("type", pass.type);
  json.member("selection", pass.selection).member("parameters", pass.parameters);
  json.key("into").begin_object().member("type", pass.into.type).member("namespace", pass.into.name_space);
  json.member("name", pass.into.name).end_object().member("shuffle", to_string(pass.shuffle));
  json.member("map_tasks", pass.map_tasks).member("map_tasks_done", pass.map_tasks_done);
  json.member("reduce_tasks", pass.reduce_tasks).member("reduce_tasks_done", pass.reduce_tasks_done);
  json.member("tasks_repeated", pass.tasks_repeated).member("documents_read", pass.documents_read);
  json.member("documents_reused", pass.documents_reused).member("bytes_read", pass.bytes_read);
  json.member("dead_letters", pass.dead_letters).member("tuples", pass.tuples).member("sent_bytes", pass.sent_bytes);
  json.member("spilled_bytes", pass.spilled_bytes).member("results", pass.results);
  json.member("documents_put", pass.documents_put).member("documents_removed", pass.documents_removed).end_object();
}

}  // namespace

JsonShape aggregation_shape(AggregateRequest& request) {
  return JsonShape()
      .text("type", request.type)
      .text("selection", request.selection)
      .texts("group_by", request.group_by)
      .texts("aggregates", request.aggregates)
      .text("having", request.having)
      .texts("order_by", request.order_by)
      .count("limit", request.limit)
      .text("into", request.into)
      .text("into_namespace", request.into_namespace)
      .text("name", request.name)
      .required("aggregates");
}

Result<SubmittedJob> read_job(const std::string& body) {
  SubmittedJob job;
  JobRequest& request = job.request;
  std::list<PassBody> passes;  // A list, so that its members keep their addresses while they are read.
  std::string shuffle = "auto";
  std::uint64_t output_buckets = 0;
  std::uint64_t visitors_per_node = 0;
  FJORD_TRY(read_json(body, JsonShape()
                                .objects("passes", [&passes] { return shape_of(passes.emplace_back()); })
                                .text_map("settings", request.settings)
                                .flag("incremental", request.incremental)
                                .text("shuffle", shuffle)
                                .text("output_namespace", request.output_namespace)
                                .count("output_buckets", output_buckets)
                                .count("visitors_per_node", visitors_per_node)
                                .flag("detached", job.is_detached)
                                .required("passes")));
  request.shuffle = job_shuffle_from_string(shuffle);
  if (to_string(request.shuffle) != shuffle) {
    return Status(StatusCode::InvalidArgument, "the body: \"shuffle\": expected auto, store or direct");
  }
  FJORD_TRY(set_number("output_buckets", output_buckets, request.output_buckets));
  FJORD_TRY(set_number("visitors_per_node", visitors_per_node, request.visitors_per_node));
  for (PassBody& pass : passes) {
    FJORD_TRY_ASSIGN(JobPassRequest made, pass_of(std::move(pass), request.passes.size()));
    request.passes.push_back(std::move(made));
  }
  return job;
}

void write_job(const JobInfo& job, JsonText& json) {
  json.begin_object().member("job", job.id).member("state", to_string(job.state)).member("phase", job.phase);
  if (job.error) {
    json.key("error").null();
  } else {
    write_error("error", job.error, json);
  }
  json.key("passes").begin_array();
  for (const JobPassInfo& pass : job.passes) write_pass(pass, json);
  json.end_array().member("passes_done", job.passes_done).member("fraction_done", job.fraction_done);
  json.known_seconds("seconds_left", job.left == Duration(0) ? Duration(-1) : job.left);
  json.seconds("seconds_left_error", job.left_error).member("bound_by", job.bound_by);
  json.member("dead_letters", job.dead_letters).member("documents_read", job.documents_read());
  json.member("settings", job.settings).member("output_namespace", job.output_namespace).member("owner", job.owner);
  json.member("live", job.is_live).member("recorded", job.has_record).member("taken_over", job.taken_over);
  json.seconds("busy_seconds", job.busy).seconds("processor_seconds", job.processor);
  json.member("submitted_unix_us", job.submitted_unix_us).member("finished_unix_us", job.finished_unix_us);
  json.member("results_until_unix_us", job.results_until_unix_us);
  json.member("results_removed", job.results_removed).end_object();
}

}  // namespace fjord::gateway
