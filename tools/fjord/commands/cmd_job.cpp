#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/job_client.h"
#include "commands/job_passes.h"
#include "fjord/client/connect.h"
#include "fjord/common/hash.h"
#include "fjord/mapreduce/passes.h"
#include "output/json_text.h"
#include "output/progress.h"

namespace fjord::cli {
namespace {

double seconds_of(const rpc::JobStatus& job) {
  if (job.finished_unix_us == 0) return 0;
  return static_cast<double>(job.finished_unix_us - job.submitted_unix_us) / 1e6;
}

/// Returns the figures of the running or last pass, in the form in which JobStatus keeps those of earlier passes.
rpc::PassStatus present_pass(const rpc::JobStatus& job) {
  rpc::PassStatus pass;
  pass.map_tasks = job.map_tasks;
  pass.map_tasks_done = job.map_tasks_done;
  pass.reduce_tasks = job.reduce_tasks;
  pass.reduce_tasks_done = job.reduce_tasks_done;
  pass.documents_read = job.documents_read;
  pass.results = job.results;
  pass.tasks_repeated = job.tasks_repeated;
  pass.documents_put = job.documents_put;
  pass.documents_removed = job.documents_removed;
  pass.shuffle = job.shuffle;
  pass.dead_letters = job.dead_letters;
  for (const rpc::PassStatus& before : job.passes_done) pass.dead_letters -= before.dead_letters;
  return pass;
}

/// Returns the state of pass `i`.
std::string_view pass_state(const rpc::JobStatus& job, std::size_t i) {
  if (i < job.passes_done.size()) return "done";
  return i > job.passes_done.size() ? "waiting" : phase_text(job.phase);
}

rpc::PassStatus pass_at(const rpc::JobStatus& job, std::size_t i) {
  if (i < job.passes_done.size()) return job.passes_done[i];
  return i == job.passes_done.size() ? present_pass(job) : rpc::PassStatus();
}

void passes_as_json(const rpc::JobStatus& job, JsonText& json) {
  json.key("passes").begin_array();
  for (std::size_t i = 0; i < job.spec.passes.size(); ++i) {
    const rpc::JobPass& spec = job.spec.passes[i];
    const rpc::PassStatus pass = pass_at(job, i);
    json.begin_object().key("state").text(pass_state(job, i)).key("application").text(spec.application);
    json.key("type").text(spec.document_type).key("selection").text(spec.selection);
    json.key("into").text(spec.into.type).key("shuffle").text(shuffle_text(pass.shuffle));
    json.key("map_tasks").number(pass.map_tasks).key("map_tasks_done").number(pass.map_tasks_done);
    json.key("reduce_tasks").number(pass.reduce_tasks).key("reduce_tasks_done").number(pass.reduce_tasks_done);
    json.key("tasks_repeated").number(pass.tasks_repeated).key("documents_read").number(pass.documents_read);
    json.key("dead_letters").number(pass.dead_letters).key("results").number(pass.results);
    json.key("documents_put").number(pass.documents_put).key("documents_removed").number(pass.documents_removed);
    json.end_object();
  }
  json.end_array();
}

std::string passes_as_text(const rpc::JobStatus& job) {
  std::string text;
  for (std::size_t i = 0; i < job.spec.passes.size(); ++i) {
    const rpc::JobPass& spec = job.spec.passes[i];
    const rpc::PassStatus pass = pass_at(job, i);
    text += fmt::format("pass {:<8}{}: {} on {}, map {} of {}, reduce {} of {}, {} documents, {} rows", i + 1,
                        pass_state(job, i), spec.application, spec.document_type.empty() ? "rows" : spec.document_type,
                        pass.map_tasks_done, pass.map_tasks, pass.reduce_tasks_done, pass.reduce_tasks,
                        pass.documents_read, pass.results);
    if (pass.dead_letters != 0) text += fmt::format(", {} dead letters", pass.dead_letters);
    if (!spec.into.type.empty()) {
      text += fmt::format("; {} put as {}, {} removed", pass.documents_put, spec.into.type, pass.documents_removed);
    }
    text += "\n";
  }
  return text;
}

std::string_view state_text(const rpc::JobStatus& job) {
  if (has_ended(job)) return phase_text(job.phase);
  if (job.paused) return "paused";
  if (!job.live) return "without an owner";
  return job.phase == rpc::JobPhase::Queued ? "queued" : "running";
}

/// Returns the time until which the results are kept, or "removed"; empty if there is no such time.
std::string kept_text(const rpc::JobStatus& job) {
  if (job.results_removed) return "removed";
  if (job.results_until_unix_us == 0) return {};
  const auto until = static_cast<std::time_t>(job.results_until_unix_us / 1'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(until));
}

std::string as_json(const rpc::JobStatus& job) {
  JsonText json;
  const rpc::JobPass first = mapreduce::passes_of(job.spec).front();
  json.begin_object().key("job").text(job.job_id).key("application").text(first.application);
  json.key("type").text(first.document_type).key("selection").text(first.selection);
  json.key("parameters").begin_object();
  for (const rpc::Parameter& parameter : first.parameters) json.key(parameter.name).text(parameter.value);
  json.end_object().key("output_namespace").text(job.spec.output_namespace).key("phase").text(phase_text(job.phase));
  json.key("error").text(job.error.is_ok() ? "" : job.error.to_string());
  json.key("map_tasks").number(job.map_tasks).key("map_tasks_done").number(job.map_tasks_done);
  json.key("reduce_tasks").number(job.reduce_tasks).key("reduce_tasks_done").number(job.reduce_tasks_done);
  json.key("tasks_repeated").number(job.tasks_repeated).key("documents_read").number(job.documents_read);
  json.key("documents_reused").number(job.documents_reused);
  json.key("bytes_read").number(job.bytes_read).key("tuples").number(job.tuples);
  json.key("tuple_documents").number(job.tuple_documents).key("results").number(job.results);
  json.key("shuffle").text(shuffle_text(job.shuffle)).key("spilled_bytes").number(job.spilled_bytes);
  json.key("state").text(state_text(job)).key("progress").real(fraction_done(job), 4);
  json.key("left_seconds").real(static_cast<double>(job.left_us) / 1e6, 3);
  json.key("left_error_seconds").real(static_cast<double>(job.left_error_us) / 1e6, 3);
  json.key("bound_by").text(job.bound_by).key("dead_letters").number(job.dead_letters);
  json.key("sent_bytes").number(job.sent_bytes).key("busy_seconds").real(static_cast<double>(job.busy_us) / 1e6, 3);
  json.key("processor_seconds").real(static_cast<double>(job.processor_us) / 1e6, 3);
  json.key("owner").text(job.owner).key("recorded").boolean(job.epoch != 0 && job.revision != 0);
  json.key("live").boolean(job.live).key("taken_over").number(job.taken_over);
  json.key("settings").begin_object();
  for (const rpc::Parameter& setting : job.settings) json.key(setting.name).text(setting.value);
  json.end_object();
  if (!job.spec.passes.empty()) passes_as_json(job, json);
  json.key("results_removed").boolean(job.results_removed);
  json.key("results_until_unix_us").integer(job.results_until_unix_us);
  json.key("submitted_unix_us").integer(job.submitted_unix_us).key("finished_unix_us").integer(job.finished_unix_us);
  json.key("seconds").real(seconds_of(job), 3).end_object();
  return json.str();
}

std::string as_text(const rpc::JobStatus& job) {
  const rpc::JobPass first = mapreduce::passes_of(job.spec).front();
  std::string text =
      fmt::format("job          {}\napplication  {} on {}", job.job_id, first.application, first.document_type);
  for (const rpc::Parameter& parameter : first.parameters) {
    const auto lines = std::count(parameter.value.begin(), parameter.value.end(), '\n');
    text += lines > 0 ? fmt::format(" {}=({} lines)", parameter.name, lines)
                      : fmt::format(" {}={}", parameter.name, parameter.value);
  }
  if (!first.selection.empty()) text += " where " + first.selection;
  text += fmt::format("\nstate        {}\nphase        {}\n", state_text(job), phase_text(job.phase));
  if (!job.error.is_ok()) text += fmt::format("error        {}\n", job.error.to_string());
  text += passes_as_text(job);
  text += fmt::format("map          {} of {} tasks, {} documents, {} bytes\n", job.map_tasks_done, job.map_tasks,
                      job.documents_read, job.bytes_read);
  text +=
      fmt::format("reduce       {} of {} tasks, {} results\n", job.reduce_tasks_done, job.reduce_tasks, job.results);
  text += fmt::format("repeated     {} tasks\n", job.tasks_repeated);
  text += fmt::format("coverage     {} of {} buckets, {} documents, {} of them dead letters\n", job.map_tasks_done,
                      job.map_tasks, job.documents_read, job.dead_letters);
  if (job.documents_reused != 0) {
    text += fmt::format("reused       {} documents that an earlier run had read\n", job.documents_reused);
  }
  if (!has_ended(job)) {
    text += fmt::format("progress     {:.1f} %", 100 * fraction_done(job));
    if (job.left_us != 0) {
      text += fmt::format(", {:.1f} s +- {:.1f} s left of this phase", static_cast<double>(job.left_us) / 1e6,
                          static_cast<double>(job.left_error_us) / 1e6);
    }
    text += "\n";
    if (!job.bound_by.empty()) text += fmt::format("bound by     {}\n", job.bound_by);
  }
  text += fmt::format("owner        {}{}", job.owner, job.live || has_ended(job) ? "" : ", which does not answer");
  if (job.taken_over != 0) text += fmt::format("; gone on with {} times by another process", job.taken_over);
  text += fmt::format("\nused         {:.3f} s of computing", static_cast<double>(job.busy_us) / 1e6);
  if (job.processor_us != 0)
    text += fmt::format(" ({:.3f} s of processors)", static_cast<double>(job.processor_us) / 1e6);
  text += fmt::format(", {} bytes of tuples sent\n", job.sent_bytes);
  if (!job.settings.empty()) {
    text += "settings    ";
    for (const rpc::Parameter& setting : job.settings) text += fmt::format(" {}={}", setting.name, setting.value);
    text += "\n";
  }
  text += fmt::format("shuffle      {}, {} bytes spilled to disk\n", shuffle_text(job.shuffle), job.spilled_bytes);
  if (has_ended(job)) text += fmt::format("time         {:.3f} s\n", seconds_of(job));
  if (const std::string kept = kept_text(job); !kept.empty()) text += fmt::format("kept until   {}\n", kept);
  return text;
}

Result<rpc::JobStatus> find_job(SyncClient& client, const std::string& id) {
  FJORD_TRY_ASSIGN(std::vector<rpc::JobStatus> jobs, client.list_jobs(id));
  for (rpc::JobStatus& job : jobs) {
    if (job.job_id == id) return std::move(job);
  }
  return Status(StatusCode::NotFound, fmt::format("no distributor that is up knows a job \"{}\"", id));
}

/// Waits for the end of the job and shows its progress.
Result<rpc::JobStatus> wait_for(Connection& connection, const std::string& id, const rpc::JobSpec* spec,
                                const JobArgs& args) {
  Progress progress("job", "docs", Progress::when(args.progress));
  FJORD_TRY_ASSIGN(auto reply,
                   wait_for_job(connection, id, spec, args.common.timeout(), 0, [&](const rpc::JobStatus& job) {
                     progress.update(fraction_done(job), job.documents_read, std::string(phase_text(job.phase)));
                   }));
  return std::move(reply.jobs.front());
}

int print_end(const rpc::JobStatus& job, const Common& common) {
  print_line(common.json() ? as_json(job) : as_text(job).substr(0, as_text(job).size() - 1));
  if (job.phase == rpc::JobPhase::Done) return exit_code_of_done(job);
  complain(fmt::format("job {} {}{}", job.job_id, phase_text(job.phase),
                       job.error.is_ok() ? "" : ": " + job.error.to_string()));
  return job.error.is_ok() ? static_cast<int>(kFailed) : failure_code(job.error);
}

Result<rpc::JobSpec> spec_of(const JobArgs& args) {
  rpc::JobSpec spec;
  spec.application = args.application;
  spec.document_type = args.type;
  spec.selection = args.selection;
  spec.output_namespace = args.output_namespace;
  spec.visitors_per_node = args.visitors_per_node;
  spec.output_buckets = args.output_buckets;
  FJORD_TRY_ASSIGN(spec.parameters, parse_parameters(args.parameters));
  if (!args.script.empty()) {
    FJORD_TRY_ASSIGN(rpc::Parameter script, script_parameter(args.script));
    spec.parameters.push_back(std::move(script));
  }
  spec.shuffle = shuffle_from(args.shuffle);
  spec.incremental = args.incremental;
  FJORD_TRY_ASSIGN(spec.settings, parse_parameters(args.settings));
  return spec;
}

/// Replaces the application of `spec` by a list of passes. Errors: as chained_passes().
Status chain(const JobArgs& args, const std::shared_ptr<const DocumentTypeRepo>& types, rpc::JobSpec& spec) {
  std::string text = spec.application + spec.document_type + spec.selection;
  for (const rpc::Parameter& parameter : spec.parameters) text += parameter.name + "=" + parameter.value;
  for (const std::string& json : args.then) text += json;
  const rpc::RowTarget target{
      {}, args.into_namespace, args.name.empty() ? fmt::format("{:016x}", hash64(text)) : args.name};
  rpc::JobPass first{std::exchange(spec.application, {}),
                     std::exchange(spec.document_type, {}),
                     std::exchange(spec.selection, {}),
                     std::exchange(spec.parameters, {}),
                     {}};
  FJORD_TRY_ASSIGN(spec.passes, chained_passes(std::move(first), args.then, target, types));
  return Status::ok();
}

/// Connects to the cluster and calls `use(connection, client)`.
template <typename F>
int with_cluster(const Common& common, F use) {
  auto connection = connect_to(common);
  if (!connection) return report(connection.error());
  SyncClient client = (*connection)->sync();
  return use(**connection, client);
}

}  // namespace

int run_job_run(const JobArgs& args) {
  auto spec = spec_of(args);
  if (!spec) return report(spec.error());
  return with_cluster(args.common, [&](Connection& connection, SyncClient& client) {
    if (!args.then.empty()) {
      if (const Status status = client.refresh_schemas(); !status) return report(status);
      const Status status = chain(args, connection.client().snapshot()->types(), *spec);
      if (!status) return report(status);
    }
    const auto id = client.submit_job(*spec);
    if (!id) return report(id.error());
    if (!args.wait) {
      print_line(args.common.json() ? JsonText().begin_object().key("job").text(*id).end_object().str() : *id);
      return static_cast<int>(kOk);
    }
    complain("job " + *id + " is running");
    const auto job = wait_for(connection, *id, &*spec, args);
    return job ? print_end(*job, args.common) : report(job.error());
  });
}

int run_job_list(const JobArgs& args) {
  return with_cluster(args.common, [&](Connection&, SyncClient& client) {
    const auto jobs = client.list_jobs();
    if (!jobs) return report(jobs.error());
    if (!args.common.json()) {
      print_line(fmt::format("{:<24} {:<12} {:<16} {:<10} {:>12} {:>8} {:>10} {:>9} {}", "JOB", "APPLICATION", "TYPE",
                             "PHASE", "DOCUMENTS", "DEAD", "RESULTS", "SECONDS", "KEPT UNTIL"));
    }
    for (const rpc::JobStatus& job : *jobs) {
      print_line(args.common.json()
                     ? as_json(job)
                     : fmt::format("{:<24} {:<12} {:<16} {:<10} {:>12} {:>8} {:>10} {:>9.3f} {}", job.job_id,
                                   mapreduce::passes_of(job.spec).front().application,
                                   mapreduce::passes_of(job.spec).front().document_type, phase_text(job.phase),
                                   job.documents_read, job.dead_letters, job.results, seconds_of(job), kept_text(job)));
    }
    return static_cast<int>(kOk);
  });
}

int run_job_show(const JobArgs& args) {
  return with_cluster(args.common, [&](Connection&, SyncClient& client) {
    const auto job = find_job(client, args.job);
    if (!job) return report(job.error());
    print(args.common.json() ? as_json(*job) + "\n" : as_text(*job));
    return static_cast<int>(kOk);
  });
}

int run_job_watch(const JobArgs& args) {
  return with_cluster(args.common, [&](Connection& connection, SyncClient& client) {
    if (const auto known = find_job(client, args.job); !known) return report(known.error());
    const auto job = wait_for(connection, args.job, nullptr, args);
    return job ? print_end(*job, args.common) : report(job.error());
  });
}

int run_job_cancel(const JobArgs& args) {
  return with_cluster(args.common, [&](Connection&, SyncClient& client) {
    if (Status status = client.cancel_job(args.job); !status) return report(status);
    print_line(
        args.common.json()
            ? JsonText().begin_object().key("job").text(args.job).key("cancelled").boolean(true).end_object().str()
            : "cancelled " + args.job);
    return static_cast<int>(kOk);
  });
}

namespace {

int control(const JobArgs& args, rpc::JobAction action, const char* done) {
  rpc::ControlJob request;
  request.job_id = args.job;
  request.action = action;
  auto settings = parse_parameters(args.settings);
  if (!settings) return report(settings.error());
  request.settings = std::move(*settings);
  return with_cluster(args.common, [&](Connection&, SyncClient& client) {
    if (Status status = client.control_job(request); !status) {
      // An invalid setting is a usage error; an ended job is a failure.
      const auto job = find_job(client, args.job);
      return job && has_ended(*job) ? report_failure(status) : report(status);
    }
    print_line(args.common.json()
                   ? JsonText().begin_object().key("job").text(args.job).key(done).boolean(true).end_object().str()
                   : fmt::format("{} {}", done, args.job));
    return static_cast<int>(kOk);
  });
}

}  // namespace

namespace {

/// Removes a job or its results. Removing many documents takes longer than one call; a repeated call waits for the
/// removal in progress.
int removal(const JobArgs& args, rpc::JobAction action, const char* done) {
  constexpr int kCallsMax = 100;
  rpc::ControlJob request;
  request.job_id = args.job;
  request.action = action;
  return with_cluster(args.common, [&](Connection&, SyncClient& client) {
    Status status(StatusCode::Timeout, "");
    for (int i = 0; i < kCallsMax && status.code() == StatusCode::Timeout; ++i) status = client.control_job(request);
    if (!status) return report_failure(status);
    print_line(args.common.json()
                   ? JsonText().begin_object().key("job").text(args.job).key("removed").boolean(true).end_object().str()
                   : fmt::format("{} {}", done, args.job));
    return static_cast<int>(kOk);
  });
}

}  // namespace

int run_job_remove(const JobArgs& args) { return removal(args, rpc::JobAction::Remove, "removed"); }
int run_job_pause(const JobArgs& args) { return control(args, rpc::JobAction::Pause, "paused"); }
int run_job_resume(const JobArgs& args) { return control(args, rpc::JobAction::Resume, "resumed"); }
int run_job_set(const JobArgs& args) { return control(args, rpc::JobAction::Set, "set"); }

int run_job_dead_letters(const JobArgs& args) {
  return with_cluster(args.common, [&](Connection& connection, SyncClient&) {
    rpc::ListJobs request;
    request.job_id = args.job;
    request.records = request.dead_letters = true;
    const auto reply = ask_for_job(connection, std::move(request), args.common.timeout());
    if (!reply) return report(reply.error());
    std::string text;
    for (const rpc::DeadLetter& letter : reply->jobs.front().dead_letter_list) {
      text += args.common.json() ? JsonText()
                                           .begin_object()
                                           .key("document")
                                           .text(letter.document)
                                           .key("error")
                                           .text(letter.error)
                                           .end_object()
                                           .str() +
                                       "\n"
                                 : fmt::format("{}\t{}\n", letter.document, letter.error);
    }
    print(text);
    return static_cast<int>(kOk);
  });
}

int run_job_results(const JobArgs& args) {
  if (args.remove_results) return removal(args, rpc::JobAction::RemoveResults, "removed results of");
  return with_cluster(args.common, [&](Connection& connection, SyncClient& client) {
    const auto job = find_job(client, args.job);
    if (!job) return report(job.error());
    const auto results = read_results(connection, *job);
    if (!results) return report_failure(results.error());
    std::string text;
    for (const auto& [key, value] : *results) {
      if (args.common.json()) {
        text += JsonText().begin_object().key("key").text(key).key("value").raw(value).end_object().str() + "\n";
      } else {
        text += fmt::format("{}\t{}\n", key, value);
      }
    }
    print(text);
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
