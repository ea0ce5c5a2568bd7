// /aggregate/v1: groups and aggregates documents, and waits for the rows.

#include <algorithm>
#include <stop_token>
#include <utility>

#include "fjord/library/detail/aggregate_run.h"
#include "fjord/library/detail/csv_cell.h"
#include "http/answer_form.h"
#include "http/job_request.h"
#include "http/long_answer.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

/// Without an answer about the job for so long, the request ends.
constexpr Duration kSilenceMax = seconds(10);

Result<AggregateRequest> read_aggregation(const std::string& body) {
  AggregateRequest request;
  FJORD_TRY(read_json(body, aggregation_shape(request)
                                .flag("incremental", request.incremental)
                                .text_map("settings", request.settings)
                                .required("type")));
  request.timeout = kSilenceMax;
  return request;
}

struct CellWriter {
  void operator()(std::monostate) const { json.null(); }
  void operator()(const Json& value) const { json.raw(value.text); }
  template <typename T>
  void operator()(const T& value) const {
    json.value(value);
  }
  JsonText& json;
};

void write_cell(const Cell& cell, JsonText& json) { std::visit(CellWriter{json}, cell); }

std::string csv_text(const Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return {};
  const std::string text = to_string(cell);
  return text.empty() ? "\"\"" : csv_cell(text);
}

void write_numbers(const AggregateResult& result, JsonText& json) {
  json.member("documents_read", result.documents_read).member("dead_letters", result.dead_letters);
  json.member("documents_put", result.documents_put).member("documents_removed", result.documents_removed);
  json.member("buckets", result.buckets_total).member("buckets_read", result.buckets);
}

void give_json(const AggregateResult& result, LongAnswer& answer) {
  JsonText head;
  head.begin_object().member("job", result.job_id).member("columns", result.columns).end_object();
  std::string text = head.str();
  text.pop_back();
  answer.add(text + ",\"rows\":[");
  for (std::size_t i = 0; i < result.rows.size() && answer.is_open(); ++i) {
    JsonText row;
    row.begin_array();
    for (const Cell& cell : result.rows[i]) write_cell(cell, row);
    row.end_array();
    answer.add((i == 0 ? "" : ",") + row.str());
  }
  JsonText numbers;
  numbers.begin_object();
  write_numbers(result, numbers);
  numbers.end_object();
  answer.add("]," + numbers.str().substr(1));
}

void give_lines(const AggregateResult& result, LongAnswer& answer) {
  for (const std::vector<Cell>& cells : result.rows) {
    JsonText row;
    row.begin_object().key("row").begin_object();
    for (std::size_t i = 0; i < cells.size(); ++i) write_cell(cells[i], row.key(result.columns[i]));
    row.end_object().end_object();
    if (!answer.add(row.str() + "\n")) return;
  }
  JsonText end;
  end.begin_object().key("end").begin_object().member("job", result.job_id).member("rows", result.rows.size());
  write_numbers(result, end);
  end.end_object().end_object();
  answer.add(end.str() + "\n");
}

void give_csv(const AggregateResult& result, LongAnswer& answer) {
  std::string line;
  for (const std::string& column : result.columns) line += (line.empty() ? "" : ",") + csv_cell(column);
  answer.add(line + "\n");
  for (const std::vector<Cell>& cells : result.rows) {
    line.clear();
    for (std::size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + csv_text(cells[i]);
    if (!answer.add(line + "\n")) return;
  }
}

void aggregate(Client& client, const ApiCall& call, const HttpReply& reply) {
  const auto refuse = [&](const Status& status) { reply(error_answer(call.request, status)); };
  const auto form = answer_form_of(call, true);
  if (!form) return refuse(form.error());
  const auto timeout = call.duration("timeout", seconds(1'000'000));
  if (!timeout) return refuse(timeout.error());
  auto request = read_aggregation(call.request.body);
  if (!request) return refuse(request.error());
  // The job is cancelled if the client goes away, and after the timeout.
  std::stop_source stop;
  reply.on_stop([stop]() mutable { stop.request_stop(); });
  request->stop = stop.get_token();
  request->time_limit = std::max<Duration>(*timeout, milliseconds(1));
  const AggregateResult result = run_aggregate(client.core(), *request);
  if (!result.status) return refuse(result.status);
  LongAnswer answer(reply, content_type_of(*form));
  switch (*form) {
    case AnswerForm::Json:
      give_json(result, answer);
      break;
    case AnswerForm::Lines:
      give_lines(result, answer);
      break;
    case AnswerForm::Csv:
      give_csv(result, answer);
      break;
  }
  answer.end();
}

}  // namespace

void add_aggregate_routes(RouteTable& routes, Client& client) {
  routes.add_streaming("POST", "/aggregate/v1", {"format", "timeout"},
                       [&client](const ApiCall& call, const HttpReply& reply) { aggregate(client, call, reply); });
}

}  // namespace fjord::gateway
