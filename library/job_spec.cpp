#include "fjord/library/detail/job_spec.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <utility>

#include "fjord/common/hash.h"
#include "fjord/library/detail/input_file.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/passes.h"
#include "parameters.h"

namespace fjord {

namespace {

using mapreduce::AggregatePlan;
using mapreduce::AggregateSpec;

constexpr std::size_t kScriptBytesMax = std::size_t{1} << 20;

Status wrong(const std::string& what) { return {StatusCode::InvalidArgument, what}; }

Result<std::string> text_of(const rapidjson::Value& value, const std::string& member) {
  if (!value.IsString()) return wrong(fmt::format("\"{}\" has to be a string", member));
  return std::string(value.GetString(), value.GetStringLength());
}

Result<JobPassRequest> application_from_json(const rapidjson::Value& object) {
  JobPassRequest pass;
  for (const auto& [key, value] : object.GetObject()) {
    const std::string name(key.GetString(), key.GetStringLength());
    if (name == "application") {
      FJORD_TRY_ASSIGN(pass.application, text_of(value, name));
    } else if (name == "selection") {
      FJORD_TRY_ASSIGN(pass.selection, text_of(value, name));
    } else if (name == "script") {
      FJORD_TRY_ASSIGN(const std::string file, text_of(value, name));
      FJORD_TRY_ASSIGN(const JobPassRequest script, JobPassRequest::of_script_file(file));
      pass.parameters.insert(script.parameters.begin(), script.parameters.end());
    } else if (name == "parameters" && value.IsObject()) {
      for (const auto& [parameter, text] : value.GetObject()) {
        std::string parameter_name(parameter.GetString(), parameter.GetStringLength());
        FJORD_TRY_ASSIGN(std::string parameter_value, text_of(text, "parameters." + parameter_name));
        pass.parameters[std::move(parameter_name)] = std::move(parameter_value);
      }
    } else {
      return wrong(fmt::format(
          "not a member of a pass, or not of that kind: \"{}\"; there are application, parameters (an object of "
          "strings), script and selection",
          name));
    }
  }
  return pass;
}

/// The input of the next pass.
struct Reads {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::string type;
};

AggregateSpec spec_of(const AggregateRequest& request) {
  AggregateSpec spec;
  spec.type = request.type;
  spec.selection = request.selection;
  spec.group_by = request.group_by;
  spec.aggregates = request.aggregates;
  spec.having = request.having;
  spec.order_by = request.order_by;
  spec.limit = request.limit;
  spec.into = request.into;
  return spec;
}

Result<rpc::JobPass> aggregate_pass(const AggregateRequest& request, bool is_first,
                                    const std::shared_ptr<const DocumentTypeRepo>& types, Reads& reads) {
  AggregateSpec spec = spec_of(request);
  if (is_first) {
    reads = {types, spec.type};
    if (spec.type.empty()) return wrong("type is empty: expected a document type");
  } else if (!spec.type.empty()) {
    return wrong("it reads the rows so far, so it has no \"type\"");
  }
  spec.type = reads.type;
  FJORD_TRY_ASSIGN(const auto plan, AggregatePlan::compile(spec, *reads.types));
  rpc::JobPass pass{mapreduce::kAggregateApplication,
                    spec.type,
                    plan->selection(),
                    {{mapreduce::kAggregateParameter, spec.to_json()}},
                    {}};
  if (!spec.into.empty()) {
    const std::string name = request.name.empty() ? fmt::format("{:016x}", hash64(spec.to_json())) : request.name;
    pass.into = {spec.into, request.into_namespace, name};
    reads = {types, spec.into};
  } else {
    FJORD_TRY_ASSIGN(reads.types, mapreduce::row_types(plan->columns()));
    reads.type = mapreduce::kRowType;
  }
  return pass;
}

rpc::JobPass application_pass(const JobPassRequest& request) {
  return {request.application,
          request.type,
          request.selection,
          parameters_of(request.parameters),
          {request.into.type, request.into.name_space, request.into.name}};
}

Result<std::vector<rpc::JobPass>> passes_of(const std::vector<JobPassRequest>& requests,
                                            const std::shared_ptr<const DocumentTypeRepo>& types) {
  std::vector<rpc::JobPass> passes;
  FJORD_TRY_ASSIGN(const auto keys_and_values, mapreduce::row_types({}));
  Reads reads;
  for (const JobPassRequest& request : requests) {
    if (request.aggregation) {
      auto pass = aggregate_pass(*request.aggregation, passes.empty(), types, reads);
      if (!pass && requests.size() == 1) return pass.error();
      if (!pass) return pass.error().with_context(fmt::format("pass {}", passes.size() + 1));
      passes.push_back(std::move(*pass));
    } else {
      passes.push_back(application_pass(request));
      const bool puts = !request.into.type.empty();
      reads = puts ? Reads{types, request.into.type} : Reads{keys_and_values, mapreduce::kRowType};
    }
  }
  return passes;
}

}  // namespace

JobPassRequest JobPassRequest::of_application(std::string application, std::string type, std::string selection) {
  JobPassRequest pass;
  pass.application = std::move(application);
  pass.type = std::move(type);
  pass.selection = std::move(selection);
  return pass;
}

JobPassRequest JobPassRequest::of_script(std::string lua, std::string type, std::string selection) {
  JobPassRequest pass = of_application("script", std::move(type), std::move(selection));
  pass.parameters["script"] = std::move(lua);
  return pass;
}

Result<JobPassRequest> JobPassRequest::of_script_file(const std::string& path, std::string type,
                                                      std::string selection) {
  FJORD_TRY_ASSIGN(const auto file, InputFile::open(path));
  FJORD_TRY_ASSIGN(std::string lua, file->read_all(kScriptBytesMax));
  return of_script(std::move(lua), std::move(type), std::move(selection));
}

JobPassRequest JobPassRequest::of_aggregation(AggregateRequest aggregation) {
  JobPassRequest pass;
  pass.aggregation = std::move(aggregation);
  return pass;
}

Result<JobPassRequest> JobPassRequest::from_json(const std::string& json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) return wrong("not a JSON object: " + json);
  if (document.HasMember("application")) return application_from_json(document);
  FJORD_TRY_ASSIGN(AggregateSpec spec, AggregateSpec::from_json(json, false));
  AggregateRequest request;
  request.type = std::move(spec.type);
  request.selection = std::move(spec.selection);
  request.group_by = std::move(spec.group_by);
  request.aggregates = std::move(spec.aggregates);
  request.having = std::move(spec.having);
  request.order_by = std::move(spec.order_by);
  request.limit = spec.limit;
  request.into = std::move(spec.into);
  return of_aggregation(std::move(request));
}

Result<rpc::JobSpec> job_spec_of(const JobRequest& request, const std::shared_ptr<const DocumentTypeRepo>& types) {
  if (request.passes.empty()) return wrong("a job needs at least one pass");
  FJORD_TRY_ASSIGN(std::vector<rpc::JobPass> passes, passes_of(request.passes, types));
  rpc::JobSpec spec;
  spec.settings = parameters_of(request.settings);
  spec.incremental = request.incremental;
  spec.shuffle = static_cast<rpc::Shuffle>(request.shuffle);
  spec.output_namespace = request.output_namespace;
  spec.output_buckets = request.output_buckets;
  spec.visitors_per_node = request.visitors_per_node;
  if (passes.size() > 1 || !passes[0].into.type.empty()) {
    spec.passes = std::move(passes);
    return spec;
  }
  // Distributors of every version understand a job of one pass that stores no documents in this form.
  spec.application = std::move(passes[0].application);
  spec.document_type = std::move(passes[0].document_type);
  spec.selection = std::move(passes[0].selection);
  spec.parameters = std::move(passes[0].parameters);
  return spec;
}
static_assert(static_cast<int>(JobShuffle::Store) == static_cast<int>(rpc::Shuffle::Store));
static_assert(static_cast<int>(JobShuffle::Direct) == static_cast<int>(rpc::Shuffle::Direct));

}  // namespace fjord
