#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <rapidjson/document.h>

#include "commands.h"
#include "fjord/client/connect.h"
#include "fjord/client/feeder.h"
#include "fjord/common/hash.h"
#include "fjord/document/json.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "input_file.h"
#include "job_client.h"
#include "json_text.h"
#include "progress.h"

namespace fjord::cli {
namespace {

using mapreduce::AggregateColumn;
using mapreduce::AggregatePlan;
using mapreduce::AggregateSpec;
using mapreduce::ColumnKind;
using mapreduce::KeyedResult;

constexpr std::size_t kSpecBytesMax = std::size_t{1} << 20;
constexpr std::uint32_t kFirstPageBytes = std::uint32_t{8} << 20;

/// The file, and what the command line says instead.
Result<AggregateSpec> spec_of(const AggregateArgs& args) {
  AggregateSpec spec;
  if (!args.spec_file.empty()) {
    FJORD_TRY_ASSIGN(auto file, InputFile::open(args.spec_file));
    FJORD_TRY_ASSIGN(const std::string text, file->read_all(kSpecBytesMax));
    auto read = AggregateSpec::from_json(text);
    if (!read) return read.error().with_context(file->name());
    spec = std::move(*read);
  }
  const auto take_text = [](const std::string& given, std::string& into) {
    if (!given.empty()) into = given;
  };
  const auto take_list = [](const std::vector<std::string>& given, std::vector<std::string>& into) {
    if (!given.empty()) into.clear();
    for (const std::string& text : given) {
      for (std::string& part : mapreduce::split_list(text)) into.push_back(std::move(part));
    }
  };
  take_text(args.type, spec.type);
  take_text(args.selection, spec.selection);
  take_text(args.having, spec.having);
  take_text(args.into, spec.into);
  take_list(args.group_by, spec.group_by);
  take_list(args.aggregates, spec.aggregates);
  take_list(args.order_by, spec.order_by);
  if (args.limit != 0) spec.limit = args.limit;
  if (spec.type.empty()) return Status(StatusCode::InvalidArgument, "--type is missing: which documents?");
  return spec;
}

/// Can rows be documents of that type? Errors: UnknownType, InvalidField that lists the fields there are.
Status check_into(const AggregatePlan& plan, const DocumentTypeRepo& types, const std::string& name) {
  const DocumentType* type = types.find(name);
  if (type == nullptr) return Status(StatusCode::UnknownType, fmt::format("--into: there is no type \"{}\"", name));
  std::string known;
  for (const Field& field : type->fields())
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", field.name, field.type->name());
  for (const AggregateColumn& column : plan.columns()) {
    const Field* field = type->field(column.name);
    const TypeTag tag = field == nullptr ? TypeTag::None : field->type->tag();
    const bool is_number = tag == TypeTag::Double || tag == TypeTag::Float;
    const bool is_integer = tag == TypeTag::Long || tag == TypeTag::Int;
    const bool fits = column.kind == ColumnKind::Integer  ? is_integer || is_number
                      : column.kind == ColumnKind::Number ? is_number
                      : column.kind == ColumnKind::Bool   ? tag == TypeTag::Bool
                                                          : tag == TypeTag::String;
    if (field == nullptr) {
      return Status(
          StatusCode::InvalidField,
          fmt::format("--into {}: there is no field for the column \"{}\"; fields: {}", name, column.name, known));
    }
    if (!fits) {
      return Status(StatusCode::InvalidField,
                    fmt::format("--into {}: the field {} is of type {}, which does not hold the column {} ({})", name,
                                field->name, field->type->name(), column.name, column.text));
    }
  }
  return Status::ok();
}

/// The number of an estimate, which is an object that says how good it is.
std::string number_of(std::string_view json) {
  rapidjson::Document estimate;
  estimate.Parse<rapidjson::kParseFullPrecisionFlag>(json.data(), json.size());
  if (estimate.HasParseError() || !estimate.IsObject() || !estimate.HasMember("estimate")) return std::string(json);
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  estimate["estimate"].Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

/// A cell as people read it. Of an estimate the number alone, with a mark in front.
std::string shown(std::string_view json, const char* null, const char* mark) {
  if (json == "null") return null;
  if (json.starts_with('"')) {
    rapidjson::Document text;
    text.Parse(json.data(), json.size());
    return text.IsString() ? std::string(text.GetString(), text.GetStringLength()) : std::string(json);
  }
  return json.starts_with('{') ? mark + number_of(json) : std::string(json);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + "\"";
}

class Table {
 public:
  Table(const AggregatePlan& plan, const std::vector<KeyedResult>& rows) : plan_(plan), rows_(rows) {}

  Status write(const std::string& format) {
    if (format == "json") return write_json();
    return format == "csv" ? write_csv() : write_text();
  }

 private:
  /// Calls `f(cells)` for each row. Errors: Corruption.
  template <typename F>
  Status for_each(F f) const {
    for (const auto& [key, row] : rows_) {
      FJORD_TRY_ASSIGN(const std::vector<std::string_view> cells, mapreduce::row_cells(row));
      if (cells.size() != plan_.columns().size()) return Status(StatusCode::Corruption, "a malformed row: " + row);
      f(cells);
    }
    return Status::ok();
  }

  Status write_json() const {
    std::string out;
    FJORD_TRY(for_each([&](const std::vector<std::string_view>& cells) {
      JsonText json;
      json.begin_object();
      for (std::size_t i = 0; i < cells.size(); ++i) json.key(plan_.columns()[i].name).raw(cells[i]);
      out += json.end_object().str() + "\n";
    }));
    print(out);
    return Status::ok();
  }

  Status write_csv() const {
    std::string out;
    for (std::size_t i = 0; i < plan_.columns().size(); ++i) out += (i == 0 ? "" : ",") + plan_.columns()[i].name;
    out += "\n";
    FJORD_TRY(for_each([&](const std::vector<std::string_view>& cells) {
      for (std::size_t i = 0; i < cells.size(); ++i) out += (i == 0 ? "" : ",") + csv_cell(shown(cells[i], "", ""));
      out += "\n";
    }));
    print(out);
    return Status::ok();
  }

  Status write_text() const {
    std::vector<std::vector<std::string>> lines(1);
    std::vector<std::size_t> widths;
    for (const AggregateColumn& column : plan_.columns()) {
      lines[0].push_back(column.name);
      widths.push_back(column.name.size());
    }
    FJORD_TRY(for_each([&](const std::vector<std::string_view>& cells) {
      auto& line = lines.emplace_back();
      for (std::size_t i = 0; i < cells.size(); ++i) {
        line.push_back(shown(cells[i], "-", "~"));
        widths[i] = std::max(widths[i], line.back().size());
      }
    }));
    std::string out;
    for (const auto& line : lines) {
      for (std::size_t i = 0; i < line.size(); ++i) {
        const ColumnKind kind = plan_.columns()[i].kind;
        const bool is_right = kind == ColumnKind::Integer || kind == ColumnKind::Number;
        const std::string padding(widths[i] - line[i].size(), ' ');
        const bool is_last = i + 1 == line.size();
        out += (i == 0 ? "" : "  ") + (is_right ? padding + line[i] : is_last ? line[i] : line[i] + padding);
      }
      out += "\n";
    }
    print(out);
    return Status::ok();
  }

  const AggregatePlan& plan_;
  const std::vector<KeyedResult>& rows_;
};

/// Puts each row as a document. Errors: the first one of a put.
Status put_rows(Connection& connection, const AggregateArgs& args, const AggregateSpec& spec, const AggregatePlan& plan,
                const std::vector<KeyedResult>& rows) {
  const auto types = connection.client().snapshot()->types();
  const DocumentType* type = types->find(spec.into);
  if (type == nullptr) return Status(StatusCode::UnknownType, "--into: there is no type \"" + spec.into + "\"");
  const std::string name = args.name.empty() ? fmt::format("{:016x}", hash64(spec.to_json())) : args.name;
  const std::string name_space = args.into_namespace.empty() ? "results" : args.into_namespace;
  const auto mutex = std::make_shared<std::mutex>();
  const auto error = std::make_shared<Status>();
  Feeder::Options options;
  options.timeout = args.common.timeout();
  options.on_result = [mutex, error](std::uint64_t, const OperationOutcome& outcome) {
    const std::lock_guard lock(*mutex);
    if (!outcome.is_ok() && error->is_ok()) *error = outcome.status;
  };
  Feeder feeder(connection.client(), std::move(options));
  for (const auto& [key, text] : rows) {
    FJORD_TRY_ASSIGN(const std::vector<std::string_view> cells, mapreduce::row_cells(text));
    if (cells.size() != plan.columns().size()) return Status(StatusCode::Corruption, "a malformed row: " + text);
    JsonText fields;
    fields.begin_object();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (cells[i] == "null") continue;
      fields.key(plan.columns()[i].name);
      if (plan.columns()[i].kind == ColumnKind::Json) {
        fields.text(cells[i]);
      } else {
        fields.raw(cells[i].starts_with('{') ? number_of(cells[i]) : std::string(cells[i]));
      }
    }
    const std::string text_id = mapreduce::row_document_id(name_space, spec.into, name, key);
    FJORD_TRY_ASSIGN(const DocumentId id, DocumentId::parse(text_id));
    FJORD_TRY_ASSIGN(EncodedDocument document, fields_from_json(*type, id, fields.end_object().str()));
    feeder.submit(put_operation(text_id, std::move(document)));
  }
  feeder.flush();
  const std::lock_guard lock(*mutex);
  return *error;
}

std::string coverage(const rpc::JobStatus& job, std::size_t rows) {
  const double seconds = static_cast<double>(job.finished_unix_us - job.submitted_unix_us) / 1e6;
  const std::string missing =
      job.dead_letters == 0
          ? std::string("nothing is missing")
          : fmt::format("{} of them are dead letters and not in the result (fjord job dead-letters {})",
                        job.dead_letters, job.job_id);
  std::string text =
      fmt::format("{} documents ({} bytes) read in {} of {} buckets, {}; {} rows; {:.3f} s", job.documents_read,
                  job.bytes_read, job.map_tasks_done, job.map_tasks, missing, rows, seconds);
  if (job.documents_reused != 0) {
    text += fmt::format("; {} of the documents were known from an earlier run", job.documents_reused);
  }
  if (job.tasks_repeated != 0) text += fmt::format("; {} buckets were read again", job.tasks_repeated);
  text += fmt::format("; shuffle {}", shuffle_text(job.shuffle));
  if (job.spilled_bytes != 0) text += fmt::format(", {} bytes spilled to disk", job.spilled_bytes);
  return text;
}

Result<std::vector<KeyedResult>> rows_of(Connection& connection, rpc::ListJobsReply& reply) {
  const rpc::JobStatus& job = reply.jobs.front();
  if (job.shuffle != rpc::Shuffle::Direct || reply.more_results || !reply.status) return read_results(connection, job);
  std::vector<KeyedResult> rows;
  rows.reserve(reply.results.size());
  for (rpc::Parameter& row : reply.results) rows.emplace_back(std::move(row.name), std::move(row.value));
  return rows;
}

int aggregate(Connection& connection, const AggregateArgs& args, const AggregateSpec& spec) {
  if (const Status status = connection.sync().refresh_schemas(); !status) return report(status);
  const auto types = connection.client().snapshot()->types();
  const auto plan = AggregatePlan::compile(spec, *types);
  const Status valid = !plan ? plan.error() : spec.into.empty() ? Status::ok() : check_into(**plan, *types, spec.into);
  if (!valid) {
    report(valid);
    return kUsage;
  }
  rpc::JobSpec job;
  job.application = mapreduce::kAggregateApplication;
  job.document_type = spec.type;
  job.selection = (*plan)->selection();
  job.parameters = {{mapreduce::kAggregateParameter, spec.to_json()}};
  job.shuffle = shuffle_from(args.shuffle);
  job.incremental = args.incremental;
  auto settings = parse_parameters(args.settings);
  if (!settings) {
    report(settings.error());
    return kUsage;
  }
  job.settings = std::move(*settings);
  const auto id = connection.sync().submit_job(job);
  if (!id) return report(id.error());
  auto reply = [&] {
    Progress progress("aggregate", "docs", Progress::when(args.progress));
    return wait_for_job(connection, *id, &job, args.common.timeout(), kFirstPageBytes, [&](const rpc::JobStatus& now) {
      const double part =
          now.map_tasks == 0 ? 0 : static_cast<double>(now.map_tasks_done) / static_cast<double>(now.map_tasks);
      progress.update(part, now.documents_read, std::string(phase_text(now.phase)));
    });
  }();
  if (!reply) return report(reply.error());
  const rpc::JobStatus ended = reply->jobs.front();
  if (ended.phase != rpc::JobPhase::Done) {
    complain(fmt::format("{} {}: {}; {} documents in {} of {} buckets were read", *id, phase_text(ended.phase),
                         ended.error.to_string(), ended.documents_read, ended.map_tasks_done, ended.map_tasks));
    return ended.error.is_ok() ? static_cast<int>(kFailed) : exit_code(ended.error);
  }
  auto rows = rows_of(connection, *reply);
  if (!rows) return report(rows.error());
  if (const Status status = (*plan)->arrange(*rows); !status) return report(status);
  if (const Status status = Table(**plan, *rows).write(args.common.output); !status) return report(status);
  complain(coverage(ended, rows->size()));
  if (spec.into.empty()) return kOk;
  if (const Status status = put_rows(connection, args, spec, **plan, *rows); !status) {
    complain("not all rows were put: " + status.to_string());
    return kPartial;
  }
  complain(fmt::format("{} documents of type {} were put", rows->size(), spec.into));
  return kOk;
}

}  // namespace

int run_aggregate(const AggregateArgs& args) {
  const auto spec = spec_of(args);
  if (!spec) {
    report(spec.error());
    return kUsage;
  }
  auto connection = connect_to(args.common);
  if (!connection) return report(connection.error());
  return aggregate(**connection, args, *spec);
}

}  // namespace fjord::cli
