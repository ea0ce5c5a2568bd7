#include "fjord/mapreduce/aggregate_spec.h"

#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include "fjord/mapreduce/passes.h"
#include "scalar.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

constexpr const char* kMembers = "type, selection, group_by, aggregates, having, order_by, limit and into";

Status wrong(std::string_view member, std::string_view expected) {
  return Status(StatusCode::InvalidArgument, fmt::format("specification: \"{}\": expected {}", member, expected));
}

std::string text_of(const rapidjson::Value& value) { return {value.GetString(), value.GetStringLength()}; }

Status take_text(const rapidjson::Value& value, std::string_view member, std::string& into) {
  if (!value.IsString()) return wrong(member, "a text");
  into = text_of(value);
  return Status::ok();
}

Status take_list(const rapidjson::Value& value, std::string_view member, std::vector<std::string>& into) {
  if (value.IsString()) {
    into = split_list(text_of(value));
    return Status::ok();
  }
  if (!value.IsArray()) return wrong(member, "a text or an array of texts");
  for (const rapidjson::Value& one : value.GetArray()) {
    if (!one.IsString()) return wrong(member, "a text or an array of texts");
    into.push_back(text_of(one));
  }
  return Status::ok();
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  const auto take = [&](std::size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t first = part.find_first_not_of(" \t\r\n");
    parts.emplace_back(first == std::string_view::npos
                           ? std::string_view()
                           : part.substr(first, part.find_last_not_of(" \t\r\n") - first + 1));
    begin = end + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      take(i);
    }
  }
  take(text.size());
  if (parts.size() == 1 && parts[0].empty()) parts.clear();
  return parts;
}

Result<std::vector<std::string_view>> row_cells(std::string_view row) {
  const Status malformed(StatusCode::Corruption, "malformed row of an aggregation");
  if (row.size() < 2 || row.front() != '[' || row.back() != ']') return malformed;
  row = row.substr(1, row.size() - 2);
  std::vector<std::string_view> cells;
  int depth = 0;
  bool is_quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const char c = row[i];
    if (is_quoted) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        is_quoted = false;
      }
    } else if (c == '"') {
      is_quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      cells.push_back(row.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (is_quoted || depth != 0) return malformed;
  if (!row.empty()) cells.push_back(row.substr(begin));
  return cells;
}

std::string row_document_id(std::string_view name_space, std::string_view type, std::string_view job,
                            std::string_view key) {
  return fmt::format("id:{}:{}::{}/{}", name_space, type, job, key_in_id(key));
}

namespace {

Result<rapidjson::Document> parsed(std::string_view json) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag | rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (document.HasParseError()) {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("specification: no JSON at byte {}: {}", document.GetErrorOffset() + 1,
                              rapidjson::GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject()) return Status(StatusCode::InvalidArgument, "specification: expected a JSON object");
  return document;
}

Result<AggregateSpec> spec_in(const rapidjson::Value& object, bool needs_type) {
  if (!object.IsObject()) return wrong("passes", "an array of objects");
  AggregateSpec spec;
  for (const auto& [key, value] : object.GetObject()) {
    const std::string name = text_of(key);
    if (name == "type") {
      FJORD_TRY(take_text(value, name, spec.type));
    } else if (name == "selection") {
      FJORD_TRY(take_text(value, name, spec.selection));
    } else if (name == "group_by") {
      FJORD_TRY(take_list(value, name, spec.group_by));
    } else if (name == "aggregates") {
      FJORD_TRY(take_list(value, name, spec.aggregates));
    } else if (name == "having") {
      FJORD_TRY(take_text(value, name, spec.having));
    } else if (name == "order_by") {
      FJORD_TRY(take_list(value, name, spec.order_by));
    } else if (name == "into") {
      FJORD_TRY(take_text(value, name, spec.into));
    } else if (name == "limit") {
      if (!value.IsUint64()) return wrong(name, "a number from 0");
      spec.limit = value.GetUint64();
    } else {
      return Status(StatusCode::InvalidArgument,
                    fmt::format("specification: unknown member \"{}\": expected {}", name, kMembers));
    }
  }
  if (needs_type && spec.type.empty()) return wrong("type", "the name of a document type");
  return spec;
}

}  // namespace

Result<AggregateSpec> AggregateSpec::from_json(std::string_view json, bool needs_type) {
  FJORD_TRY_ASSIGN(const rapidjson::Document document, parsed(json));
  return spec_in(document, needs_type);
}

Result<AggregateJob> AggregateJob::from_json(std::string_view json) {
  FJORD_TRY_ASSIGN(const rapidjson::Document document, parsed(json));
  AggregateJob job;
  if (!document.HasMember("passes")) {
    FJORD_TRY_ASSIGN(AggregateSpec spec, spec_in(document, true));
    job.passes.push_back(std::move(spec));
    return job;
  }
  const rapidjson::Value& passes = document["passes"];
  if (document.MemberCount() != 1 || !passes.IsArray() || passes.Empty() || passes.Size() > kPassesMax) {
    return wrong("passes", fmt::format("an array of 1 to {} objects, and no other member beside it", kPassesMax));
  }
  for (const rapidjson::Value& pass : passes.GetArray()) {
    FJORD_TRY_ASSIGN(AggregateSpec spec, spec_in(pass, job.passes.empty()));
    if (!job.passes.empty() && !spec.type.empty()) {
      return wrong("type", "it in the first pass only: the others read what the one before puts");
    }
    job.passes.push_back(std::move(spec));
  }
  return job;
}

std::string AggregateSpec::to_json() const {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  const auto string = [&](const std::string& value) {
    json.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
  };
  const auto text = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    json.Key(name);
    string(value);
  };
  const auto list = [&](const char* name, const std::vector<std::string>& values) {
    if (values.empty()) return;
    json.Key(name);
    json.StartArray();
    for (const std::string& value : values) string(value);
    json.EndArray();
  };
  json.StartObject();
  text("type", type);
  text("selection", selection);
  list("group_by", group_by);
  list("aggregates", aggregates);
  text("having", having);
  list("order_by", order_by);
  if (limit != 0) {
    json.Key("limit");
    json.Uint64(limit);
  }
  text("into", into);
  json.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace fjord::mapreduce
