// /jobs/v1: MapReduce jobs.

#include <utility>

#include "fjord/library/jobs.h"
#include "http/answer_form.h"
#include "http/event_stream.h"
#include "http/job_request.h"
#include "http/long_answer.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

Status say_job(const std::string& id, JsonText& json) {
  json.begin_object().member("job", id).end_object();
  return Status::ok();
}

std::string text_of(const JobInfo& job) {
  JsonText json;
  write_job(job, json);
  return json.str();
}

/// Returns true if the request waits for the end of its job.
bool waits_for_end(const ApiCall& call) {
  const auto job = read_job(call.request.body);
  return job && !job->is_detached;
}

Status submit(Client& client, const ApiCall& call, JsonText& json) {
  FJORD_TRY_ASSIGN(const SubmittedJob job, read_job(call.request.body));
  FJORD_TRY_ASSIGN(const std::string id, client.jobs().submit(job.request));
  return say_job(id, json);
}

/// Runs a job to its end. The end of the client cancels it.
void run(Client& client, const ApiCall& call, const HttpReply& reply) {
  const auto job = read_job(call.request.body);
  if (!job) return reply(error_answer(call.request, job.error()));
  const auto ended = client.jobs().run(job->request, {.stop = stop_of(reply)});
  if (!ended) return reply(error_answer(call.request, ended.error()));
  reply({.status = 200, .body = text_of(*ended)});
}

Status list_jobs(Client& client, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<JobInfo> jobs, client.jobs().list());
  json.begin_object().key("jobs").begin_array();
  for (const JobInfo& job : jobs) write_job(job, json);
  json.end_array().end_object();
  return Status::ok();
}

Status get_job(Client& client, const std::string& id, JsonText& json) {
  FJORD_TRY_ASSIGN(const JobInfo job, client.jobs().status(id));
  write_job(job, json);
  return Status::ok();
}

Status list_dead_letters(Client& client, const std::string& id, JsonText& json) {
  FJORD_TRY_ASSIGN(const std::vector<JobDeadLetter> letters, client.jobs().dead_letters(id));
  json.begin_object().key("dead_letters").begin_array();
  for (const JobDeadLetter& letter : letters) {
    json.begin_object().member("document", letter.document).member("error", letter.error).end_object();
  }
  json.end_array().end_object();
  return Status::ok();
}

Status change_job_settings(Client& client, const ApiCall& call, JsonText& json) {
  std::map<std::string, std::string> settings;
  FJORD_TRY(read_json(call.request.body, JsonShape().text_map("settings", settings).required("settings")));
  if (settings.empty()) return {StatusCode::InvalidArgument, "the body: \"settings\": expected at least one setting"};
  FJORD_TRY(client.jobs().set(call.part("job"), settings));
  return say_job(call.part("job"), json);
}

void give_results(Client& client, const ApiCall& call, const HttpReply& reply) {
  const auto form = answer_form_of(call, false);
  if (!form) return reply(error_answer(call.request, form.error()));
  JobRows rows = client.jobs().results(call.part("job"));
  const JobRow* row = rows.next();
  if (!rows.status()) return reply(error_answer(call.request, rows.status()));
  const bool is_json = *form == AnswerForm::Json;
  LongAnswer answer(reply, content_type_of(*form));
  if (is_json) answer.add("{\"results\":[");
  std::size_t count = 0;
  for (; row != nullptr && answer.is_open(); row = rows.next()) {
    JsonText json;
    json.begin_object().member("key", row->key).key("value").raw(row->value).end_object();
    if (is_json && count > 0) answer.add(",");
    answer.add(json.str() + (is_json ? "" : "\n"));
    ++count;
  }
  if (!rows.status()) return;  // The client sees that the body is not whole.
  JsonText end;
  end.begin_object().key("end").begin_object().member("results", count).end_object().end_object();
  answer.add(is_json ? "]}" : end.str() + "\n");
  answer.end();
}

/// Sends the progress of a job until it has ended.
void give_events(Client& client, const ApiCall& call, const HttpReply& reply) {
  const auto heartbeat = call.duration("heartbeat", seconds(5));
  if (!heartbeat) return reply(error_answer(call.request, heartbeat.error()));
  const std::string& id = call.part("job");
  if (const auto known = client.jobs().status(id); !known) return reply(error_answer(call.request, known.error()));
  EventStream events(reply, *heartbeat);
  const auto ended = client.jobs().wait(
      id, [&](const JobInfo& job) { events.send(job.has_ended() ? "end" : "progress", text_of(job)); }, stop_of(reply));
  if (!ended) events.send("failed", error_text(ended.error()));
  events.end();
}

using Control = Status (Jobs::*)(const std::string&);

void add_control(RouteTable& routes, Client& client, const char* method, const char* path, Control control) {
  routes.add_waiting(method, path, {}, [&client, control](const ApiCall& call, JsonText& json) -> Status {
    Jobs jobs = client.jobs();
    FJORD_TRY((jobs.*control)(call.part("job")));
    return say_job(call.part("job"), json);
  });
}

}  // namespace

void add_job_routes(RouteTable& routes, Client& client) {
  routes.add_either(
      "POST", "/jobs/v1", {}, waits_for_end,
      [&client](const ApiCall& call, JsonText& json) { return submit(client, call, json); },
      [&client](const ApiCall& call, const HttpReply& reply) { run(client, call, reply); });
  routes.add_waiting("GET", "/jobs/v1", {},
                     [&client](const ApiCall&, JsonText& json) { return list_jobs(client, json); });
  routes.add_waiting("GET", "/jobs/v1/{job}", {}, [&client](const ApiCall& call, JsonText& json) {
    return get_job(client, call.part("job"), json);
  });
  routes.add_waiting("GET", "/jobs/v1/{job}/dead_letters", {}, [&client](const ApiCall& call, JsonText& json) {
    return list_dead_letters(client, call.part("job"), json);
  });
  routes.add_waiting("POST", "/jobs/v1/{job}/settings", {}, [&client](const ApiCall& call, JsonText& json) {
    return change_job_settings(client, call, json);
  });
  add_control(routes, client, "POST", "/jobs/v1/{job}/pause", &Jobs::pause);
  add_control(routes, client, "POST", "/jobs/v1/{job}/resume", &Jobs::resume);
  add_control(routes, client, "POST", "/jobs/v1/{job}/cancel", &Jobs::cancel);
  add_control(routes, client, "DELETE", "/jobs/v1/{job}", &Jobs::remove);
  add_control(routes, client, "DELETE", "/jobs/v1/{job}/results", &Jobs::remove_results);
  routes.add_streaming("GET", "/jobs/v1/{job}/results", {"format"},
                       [&client](const ApiCall& call, const HttpReply& reply) { give_results(client, call, reply); });
  routes.add_streaming("GET", "/jobs/v1/{job}/events", {"heartbeat"},
                       [&client](const ApiCall& call, const HttpReply& reply) { give_events(client, call, reply); });
}

}  // namespace fjord::gateway
