// /aggregate/v1: groups and aggregates documents, and waits for the rows.

#include <algorithm>
#include <span>
#include <stop_token>
#include <utility>

#include "fjord/library/detail/aggregate_run.h"
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

void write_numbers(const JobInfo& job, JsonText& json) {
  const JobPassInfo& pass = job.current();
  json.member("documents_read", pass.documents_read).member("dead_letters", job.dead_letters);
  json.member("documents_put", pass.documents_put).member("documents_removed", pass.documents_removed);
  json.member("buckets", pass.map_tasks).member("buckets_read", pass.map_tasks_done);
}

Status give_json(const AggregateEnd& end, LongAnswer& answer) {
  JsonText head;
  head.begin_object().member("job", end.job.id).key("columns").begin_array();
  for (const auto& column : end.plans.back()->columns()) head.value(column.name);
  head.end_array().end_object();
  std::string text = head.str();
  text.pop_back();
  answer.add(text + ",\"rows\":[");
  const char* between = "";
  FJORD_TRY(for_each_row(end, [&](std::span<const std::string> cells) {
    JsonText row;
    row.begin_array();
    for (const std::string& cell : cells) row.raw(cell);
    row.end_array();
    return answer.add(std::exchange(between, ",") + row.str());
  }));
  JsonText numbers;
  numbers.begin_object();
  write_numbers(end.job, numbers);
  numbers.end_object();
  answer.add("]," + numbers.str().substr(1));
  return Status::ok();
}

Status give_lines(const AggregateEnd& end, LongAnswer& answer) {
  const auto& columns = end.plans.back()->columns();
  FJORD_TRY(for_each_row(end, [&](std::span<const std::string> cells) {
    JsonText row;
    row.begin_object().key("row").begin_object();
    for (std::size_t i = 0; i < cells.size(); ++i) row.key(columns[i].name).raw(cells[i]);
    row.end_object().end_object();
    return answer.add(row.str() + "\n");
  }));
  JsonText last;
  last.begin_object().key("end").begin_object().member("job", end.job.id).member("rows", end.rows.size());
  write_numbers(end.job, last);
  last.end_object().end_object();
  answer.add(last.str() + "\n");
  return Status::ok();
}

Status give_csv(const AggregateEnd& end, LongAnswer& answer) {
  answer.add(csv_header(*end.plans.back()));
  return for_each_row(end, [&](std::span<const std::string> cells) { return answer.add(csv_row(cells)); });
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
  auto run = run_of(*request);
  if (!run) return refuse(run.error());
  const auto end = run_aggregate(client.core(), std::move(*run));
  if (!end) return refuse(end.error());
  if (const Status status = status_of(end->job); !status) return refuse(status);
  LongAnswer answer(reply, content_type_of(*form));
  const auto give = *form == AnswerForm::Json ? give_json : *form == AnswerForm::Lines ? give_lines : give_csv;
  if (give(*end, answer)) answer.end();  // A body that is cut off tells the client of malformed rows.
}

}  // namespace

void add_aggregate_routes(RouteTable& routes, Client& client) {
  routes.add_streaming("POST", "/aggregate/v1", {"format", "timeout"},
                       [&client](const ApiCall& call, const HttpReply& reply) { aggregate(client, call, reply); });
}

}  // namespace fjord::gateway
