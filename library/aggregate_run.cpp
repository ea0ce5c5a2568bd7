#include "fjord/library/detail/aggregate_run.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/common/hash.h"
#include "fjord/library/detail/csv_cell.h"
#include "fjord/library/detail/job_calls.h"
#include "fjord/library/detail/job_spec.h"
#include "parameters.h"
#include "pending_writer.h"

namespace fjord {

namespace {

using mapreduce::AggregateColumn;
using mapreduce::AggregatePlan;
using mapreduce::AggregateSpec;
using mapreduce::ColumnKind;

constexpr std::uint32_t kFirstPageBytes = std::uint32_t{8} << 20;

/// Returns the job's specification. A job of one pass that stores no documents has no list of passes, because
/// distributors of every version understand that form.
rpc::JobSpec job_spec_of(const AggregateRun& run, const std::vector<std::shared_ptr<const AggregatePlan>>& plans) {
  std::string text;
  for (const AggregateSpec& spec : run.job.passes) text += spec.to_json();
  const std::string name = run.name.empty() ? fmt::format("{:016x}", hash64(text)) : run.name;
  rpc::JobSpec job;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const AggregateSpec& spec = run.job.passes[i];
    rpc::JobPass pass{mapreduce::kAggregateApplication,
                      spec.type,
                      plans[i]->selection(),
                      {{mapreduce::kAggregateParameter, spec.to_json()}},
                      {}};
    if (!spec.into.empty()) pass.into = {spec.into, run.into_namespace, name};
    job.passes.push_back(std::move(pass));
  }
  if (job.passes.size() == 1 && job.passes[0].into.type.empty()) {
    const rpc::JobPass only = std::move(job.passes[0]);
    job.passes.clear();
    job.application = only.application;
    job.document_type = only.document_type;
    job.selection = only.selection;
    job.parameters = only.parameters;
  }
  job.shuffle = static_cast<rpc::Shuffle>(run.shuffle);
  job.incremental = run.incremental;
  job.settings = parameters_of(run.settings);
  return job;
}

Cell integer_cell(std::string_view json) {
  const char* const end = json.data() + json.size();
  std::int64_t integer = 0;
  const auto read = std::from_chars(json.data(), end, integer);
  if (read.ec == std::errc() && read.ptr == end) return integer;
  return Json{std::string(json)};  // A sum of more than 64 bits.
}

Cell number_cell(std::string_view json) {
  if (json.starts_with('"')) return (json[1] == '-' ? -1 : 1) * std::numeric_limits<double>::infinity();
  const char* const end = json.data() + json.size();
  double number = 0;
  const auto read = std::from_chars(json.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end) return number;
  return Json{std::string(json)};
}

std::string text_of(std::string_view json) {
  rapidjson::Document text;
  text.Parse(json.data(), json.size());
  return text.IsString() ? std::string(text.GetString(), text.GetStringLength()) : std::string(json);
}

Cell cell_of(std::string_view json, ColumnKind kind) {
  if (json == "null") return std::monostate();
  switch (kind) {
    case ColumnKind::Integer:
      return integer_cell(estimate_of(json));
    case ColumnKind::Number:
      return number_cell(estimate_of(json));
    case ColumnKind::Bool:
      return json == "true";
    case ColumnKind::String:
      return text_of(json);
    case ColumnKind::Json:
      break;
  }
  return Json{std::string(json)};
}

CellType type_of(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::Integer:
      return CellType::Integer;
    case ColumnKind::Number:
      return CellType::Number;
    case ColumnKind::String:
      return CellType::Text;
    case ColumnKind::Bool:
      return CellType::Truth;
    case ColumnKind::Json:
      break;
  }
  return CellType::Json;
}

}  // namespace

Result<std::vector<std::vector<Cell>>> cells_of(const AggregatePlan& plan,
                                                std::span<const mapreduce::KeyedResult> rows) {
  std::vector<std::vector<Cell>> cells;
  cells.reserve(rows.size());
  for (const auto& [key, row] : rows) {
    FJORD_TRY_ASSIGN(const std::vector<std::string_view> texts, mapreduce::row_cells(row));
    if (texts.size() != plan.columns().size()) return Status(StatusCode::Corruption, "a malformed row: " + row);
    std::vector<Cell>& line = cells.emplace_back();
    line.reserve(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) line.push_back(cell_of(texts[i], plan.columns()[i].kind));
  }
  return cells;
}

void set_columns(const AggregatePlan& plan, AggregateResult& result) {
  for (const AggregateColumn& column : plan.columns()) {
    result.columns.push_back(column.name);
    result.types.push_back(type_of(column.kind));
  }
}

Status for_each_row(const AggregateEnd& end, const std::function<bool(std::span<const std::string>)>& f) {
  std::vector<std::string> cells;
  for (const auto& [key, row] : end.rows) {
    FJORD_TRY_ASSIGN(const std::vector<std::string_view> texts, mapreduce::row_cells(row));
    if (texts.size() != end.plans.back()->columns().size()) {
      return {StatusCode::Corruption, "a malformed row: " + row};
    }
    cells.clear();
    for (const std::string_view text : texts) cells.push_back(estimate_of(text));
    if (!f(cells)) break;
  }
  return Status::ok();
}

std::string csv_header(const AggregatePlan& plan) {
  std::string line;
  for (const AggregateColumn& column : plan.columns()) line += (line.empty() ? "" : ",") + csv_cell(column.name);
  return line + "\n";
}

std::string csv_row(std::span<const std::string> cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    if (cells[i] == "null") continue;
    const std::string text = cells[i].starts_with('"') ? text_of(cells[i]) : cells[i];
    line += text.empty() ? "\"\"" : csv_cell(text);
  }
  return line + "\n";
}

std::string estimate_of(std::string_view json) {
  if (!json.starts_with('{')) return std::string(json);
  rapidjson::Document estimate;
  estimate.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag>(json.data(), json.size());
  if (estimate.HasParseError() || !estimate.IsObject() || !estimate.HasMember("estimate")) return std::string(json);
  const rapidjson::Value& value = estimate["estimate"];
  if (value.IsObject() || value.IsArray()) return std::string(json);  // No estimate; may be nested to any depth.
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return {buffer.GetString(), buffer.GetSize()};
}

std::string to_string(const Cell& cell) {
  struct Text {
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const {
      if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
      return fmt::format("{}", value);
    }
    std::string operator()(const std::string& value) const { return value; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(const Json& value) const { return value.text; }
  };
  return std::visit(Text(), cell);
}

Result<AggregateEnd> run_aggregate(ClientCore& core, AggregateRun run) {
  FJORD_TRY(core.refresh());
  AggregateEnd end;
  FJORD_TRY_ASSIGN(end.plans, run.job.compile(core.types()));
  const rpc::JobSpec spec = job_spec_of(run, end.plans);
  Connection& connection = core.connection();
  FJORD_TRY_ASSIGN(const std::string id, connection.sync().submit_job(spec));
  JobWatch watch{.spec = &spec,
                 .timeout = core.timeout(run.timeout),
                 .time_limit = run.time_limit,
                 .results_bytes_max = kFirstPageBytes,
                 .stop = run.stop};
  watch.on_progress = [&](const rpc::JobStatus& job) {
    if (run.on_progress) run.on_progress(job_info_of(job));
  };
  auto waited = wait_for_job(connection, id, watch);
  if (!waited && watch.was_ended) static_cast<void>(connection.sync().cancel_job(id));
  FJORD_TRY_ASSIGN(rpc::ListJobsReply reply, std::move(waited));
  end.job = job_info_of(reply.jobs.front());
  if (end.job.state != JobState::Done) return end;
  FJORD_TRY_ASSIGN(end.rows, results_of(connection, reply));
  FJORD_TRY(end.plans.back()->arrange(end.rows));
  return end;
}

Status status_of(const JobInfo& job) {
  if (job.state == JobState::Done) return Status::ok();
  return job.state == JobState::Cancelled ? Status(StatusCode::Cancelled, "the job was cancelled") : job.error;
}

Result<AggregateRun> run_of(const AggregateRequest& request) {
  if (request.type.empty()) {
    return Status(StatusCode::InvalidArgument, "type is empty: expected a document type");
  }
  AggregateRun run;
  AggregateSpec& spec = run.job.passes.emplace_back();
  spec.type = request.type;
  spec.selection = request.selection;
  spec.group_by = request.group_by;
  spec.aggregates = request.aggregates;
  spec.having = request.having;
  spec.order_by = request.order_by;
  spec.limit = request.limit;
  spec.into = request.into;
  run.into_namespace = request.into_namespace;
  run.name = request.name;
  run.incremental = request.incremental;
  run.settings = request.settings;
  run.timeout = request.timeout;
  run.time_limit = request.time_limit;
  run.stop = request.stop;
  run.on_progress = request.on_progress;
  return run;
}

namespace {

Result<AggregateResult> aggregate(ClientCore& core, const AggregateRequest& request) {
  FJORD_TRY_ASSIGN(AggregateRun run, run_of(request));
  FJORD_TRY_ASSIGN(const AggregateEnd end, run_aggregate(core, std::move(run)));
  AggregateResult result;
  result.job_id = end.job.id;
  result.documents_read = end.job.current().documents_read;
  result.documents_put = end.job.current().documents_put;
  result.documents_removed = end.job.current().documents_removed;
  result.buckets = end.job.current().map_tasks_done;
  result.buckets_total = end.job.current().map_tasks;
  result.dead_letters = end.job.dead_letters;
  set_columns(*end.plans.back(), result);
  result.status = status_of(end.job);
  FJORD_TRY_ASSIGN(result.rows, cells_of(*end.plans.back(), end.rows));
  return result;
}

}  // namespace

AggregateResult run_aggregate(ClientCore& core, const AggregateRequest& request) {
  auto result = aggregate(core, request);
  if (result) return std::move(*result);
  AggregateResult failed;
  failed.status = result.error();
  return failed;
}

Pending<AggregateResult> Client::aggregate(AggregateRequest request) {
  if (!core_->settings_error()) return failed<AggregateResult>(core_->settings_error());
  auto state = core_->new_pending<AggregateResult>();
  core_->run_apart([&core = *core_, request = std::move(request),
                    done = PendingWriter<AggregateResult>(state)](std::stop_source close) mutable {
    const std::stop_callback forward(request.stop, [&close] { close.request_stop(); });
    request.stop = close.get_token();
    core.executor().post(
        [done = std::move(done), result = run_aggregate(core, request)]() mutable { done(std::move(result)); });
  });
  return Pending<AggregateResult>(std::move(state));
}

}  // namespace fjord
