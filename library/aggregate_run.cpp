#include "fjord/library/detail/aggregate_run.h"

#include <charconv>
#include <fmt/format.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/common/hash.h"
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

Cell number_cell(std::string_view json, ColumnKind kind) {
  const char* const end = json.data() + json.size();
  if (std::int64_t integer = 0; kind == ColumnKind::Integer) {
    const auto read = std::from_chars(json.data(), end, integer);
    if (read.ec == std::errc() && read.ptr == end) return integer;
  }
  double number = 0;
  const auto read = std::from_chars(json.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end) return number;
  return Json{std::string(json)};
}

Cell cell_of(std::string_view json, ColumnKind kind) {
  if (json == "null") return std::monostate();
  if (json == "true") return true;
  if (json == "false") return false;
  if (json.starts_with('"')) {
    rapidjson::Document text;
    text.Parse(json.data(), json.size());
    if (text.IsString()) return std::string(text.GetString(), text.GetStringLength());
  }
  if (kind == ColumnKind::Json || json.starts_with('[')) return Json{std::string(json)};
  return number_cell(estimate_of(json), kind);
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
    std::string operator()(double value) const { return fmt::format("{}", value); }
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

AggregateResult run_aggregate(ClientCore& core, const AggregateRequest& request) {
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

  AggregateResult result;
  if (request.type.empty()) {
    result.status = Status(StatusCode::InvalidArgument, "type is empty: expected a document type");
    return result;
  }
  auto end = run_aggregate(core, std::move(run));
  if (!end) {
    result.status = end.error();
    return result;
  }
  result.job_id = end->job.id;
  result.documents_read = end->job.current().documents_read;
  result.documents_put = end->job.current().documents_put;
  result.documents_removed = end->job.current().documents_removed;
  result.buckets = end->job.current().map_tasks_done;
  result.buckets_total = end->job.current().map_tasks;
  result.dead_letters = end->job.dead_letters;
  const AggregatePlan& plan = *end->plans.back();
  for (const AggregateColumn& column : plan.columns()) result.columns.push_back(column.name);
  if (end->job.state == JobState::Failed) result.status = end->job.error;
  if (end->job.state == JobState::Cancelled) result.status = Status(StatusCode::Cancelled, "the job was cancelled");
  auto rows = cells_of(plan, end->rows);
  if (rows) {
    result.rows = std::move(*rows);
  } else {
    result.status = rows.error();
  }
  return result;
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
