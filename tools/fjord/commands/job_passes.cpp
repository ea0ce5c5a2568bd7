#include "commands/job_passes.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <utility>

#include "fjord/library/detail/input_file.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/mapreduce/passes.h"

namespace fjord::cli {
namespace {

using mapreduce::AggregatePlan;
using mapreduce::AggregateSpec;

constexpr std::size_t kScriptBytesMax = std::size_t{1} << 20;

Status wrong(const std::string& what) { return {StatusCode::InvalidArgument, what}; }

Result<std::string> text_of(const rapidjson::Value& value, const std::string& member) {
  if (!value.IsString()) return wrong(fmt::format("\"{}\" has to be a string", member));
  return std::string(value.GetString(), value.GetStringLength());
}

Result<rpc::JobPass> application_pass(const rapidjson::Value& object) {
  rpc::JobPass pass;
  for (const auto& [key, value] : object.GetObject()) {
    const std::string name(key.GetString(), key.GetStringLength());
    if (name == "application") {
      FJORD_TRY_ASSIGN(pass.application, text_of(value, name));
    } else if (name == "selection") {
      FJORD_TRY_ASSIGN(pass.selection, text_of(value, name));
    } else if (name == "script") {
      FJORD_TRY_ASSIGN(const std::string file, text_of(value, name));
      FJORD_TRY_ASSIGN(rpc::Parameter script, script_parameter(file));
      pass.parameters.push_back(std::move(script));
    } else if (name == "parameters" && value.IsObject()) {
      for (const auto& [parameter, text] : value.GetObject()) {
        rpc::Parameter& added = pass.parameters.emplace_back();
        added.name.assign(parameter.GetString(), parameter.GetStringLength());
        FJORD_TRY_ASSIGN(added.value, text_of(text, "parameters." + added.name));
      }
    } else {
      return wrong(fmt::format(
          "\"{}\" is no member of a pass, or not of that kind; there are application, parameters (an object of "
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

Result<rpc::JobPass> aggregate_pass(const std::string& json, const rpc::RowTarget& target,
                                    const std::shared_ptr<const DocumentTypeRepo>& types, Reads& reads) {
  FJORD_TRY_ASSIGN(AggregateSpec spec, AggregateSpec::from_json(json, false));
  if (!spec.type.empty()) return wrong("it reads the rows so far, so it has no \"type\"");
  spec.type = reads.type;
  FJORD_TRY_ASSIGN(const auto plan, AggregatePlan::compile(spec, *reads.types));
  rpc::JobPass pass{mapreduce::kAggregateApplication,
                    spec.type,
                    plan->selection(),
                    {{mapreduce::kAggregateParameter, spec.to_json()}},
                    {}};
  if (!spec.into.empty()) {
    pass.into = target;
    pass.into.type = spec.into;
    reads = {types, spec.into};
  } else {
    FJORD_TRY_ASSIGN(reads.types, mapreduce::row_types(plan->columns()));
    reads.type = mapreduce::kRowType;
  }
  return pass;
}

}  // namespace

Result<rpc::Parameter> script_parameter(const std::string& file) {
  FJORD_TRY_ASSIGN(const auto opened, InputFile::open(file));
  FJORD_TRY_ASSIGN(std::string script, opened->read_all(kScriptBytesMax));
  return rpc::Parameter{"script", std::move(script)};
}

Result<std::vector<rpc::JobPass>> chained_passes(rpc::JobPass first, const std::vector<std::string>& then,
                                                 const rpc::RowTarget& target,
                                                 const std::shared_ptr<const DocumentTypeRepo>& types) {
  std::vector<rpc::JobPass> passes = {std::move(first)};
  FJORD_TRY_ASSIGN(const auto keys_and_values, mapreduce::row_types({}));
  Reads reads{keys_and_values, mapreduce::kRowType};
  for (const std::string& json : then) {
    rapidjson::Document document;
    document.Parse(json.data(), json.size());
    if (document.HasParseError() || !document.IsObject()) {
      return wrong(fmt::format("--then: this is no JSON object: {}", json));
    }
    const bool is_application = document.HasMember("application");
    Result<rpc::JobPass> pass =
        is_application ? application_pass(document) : aggregate_pass(json, target, types, reads);
    if (is_application) reads = {keys_and_values, mapreduce::kRowType};
    if (!pass) return pass.error().with_context(fmt::format("--then, pass {}", passes.size() + 1));
    passes.push_back(std::move(*pass));
  }
  return passes;
}

}  // namespace fjord::cli
