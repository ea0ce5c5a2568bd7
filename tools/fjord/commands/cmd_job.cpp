#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "commands/commands.h"
#include "commands/job_client.h"
#include "fjord/common/hash.h"
#include "fjord/library/jobs.h"
#include "output/json_text.h"
#include "output/progress.h"
#include "output/text_table.h"

namespace fjord::cli {
namespace {

double seconds_of(const JobInfo& job) {
  if (job.finished_unix_us == 0) return 0;
  return static_cast<double>(job.finished_unix_us - job.submitted_unix_us) / 1e6;
}
double seconds_of(Duration time) { return std::chrono::duration<double>(time).count(); }

void add_values(JsonText& json, const char* name, const std::map<std::string, std::string>& values) {
  json.key(name).begin_object();
  for (const auto& [key, value] : values) json.key(key).text(value);
  json.end_object();
}

void passes_as_json(const JobInfo& job, JsonText& json) {
  json.key("passes").begin_array();
  for (const JobPassInfo& pass : job.passes) {
    json.begin_object().key("state").text(pass.state).key("application").text(pass.application);
    json.key("type").text(pass.type).key("selection").text(pass.selection);
    json.key("into").text(pass.into.type).key("shuffle").text(to_string(pass.shuffle));
    json.key("map_tasks").number(pass.map_tasks).key("map_tasks_done").number(pass.map_tasks_done);
    json.key("reduce_tasks").number(pass.reduce_tasks).key("reduce_tasks_done").number(pass.reduce_tasks_done);
    json.key("tasks_repeated").number(pass.tasks_repeated).key("documents_read").number(pass.documents_read);
    json.key("dead_letters").number(pass.dead_letters).key("results").number(pass.results);
    json.key("documents_put").number(pass.documents_put).key("documents_removed").number(pass.documents_removed);
    json.end_object();
  }
  json.end_array();
}

std::string passes_as_text(const JobInfo& job) {
  std::string text;
  for (std::size_t i = 0; job.is_chain && i < job.passes.size(); ++i) {
    const JobPassInfo& pass = job.passes[i];
    text += fmt::format("pass {:<8}{}: {} on {}, map {} of {}, reduce {} of {}, {} documents, {} rows", i + 1,
                        pass.state, pass.application, pass.type.empty() ? "rows" : pass.type, pass.map_tasks_done,
                        pass.map_tasks, pass.reduce_tasks_done, pass.reduce_tasks, pass.documents_read, pass.results);
    if (pass.dead_letters != 0) text += fmt::format(", {} dead letters", pass.dead_letters);
    if (!pass.into.type.empty()) {
      text += fmt::format("; {} put as {}, {} removed", pass.documents_put, pass.into.type, pass.documents_removed);
    }
    text += "\n";
  }
  return text;
}

std::string_view state_text(const JobInfo& job) {
  return job.state == JobState::Orphaned ? "without an owner" : to_string(job.state);
}

/// Returns the time until which the results are kept, or "removed"; empty if there is no such time.
std::string kept_text(const JobInfo& job) {
  if (job.results_removed) return "removed";
  if (job.results_until_unix_us == 0) return {};
  const auto until = static_cast<std::time_t>(job.results_until_unix_us / 1'000'000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(until));
}

std::string as_json(const JobInfo& job) {
  JsonText json;
  const JobPassInfo& first = job.passes.front();
  const JobPassInfo& now = job.current();
  json.begin_object().key("job").text(job.id).key("application").text(first.application);
  json.key("type").text(first.type).key("selection").text(first.selection);
  add_values(json, "parameters", first.parameters);
  json.key("output_namespace").text(job.output_namespace).key("phase").text(job.phase);
  json.key("error").text(job.error.is_ok() ? "" : job.error.to_string());
  json.key("map_tasks").number(now.map_tasks).key("map_tasks_done").number(now.map_tasks_done);
  json.key("reduce_tasks").number(now.reduce_tasks).key("reduce_tasks_done").number(now.reduce_tasks_done);
  json.key("tasks_repeated").number(now.tasks_repeated).key("documents_read").number(now.documents_read);
  json.key("documents_reused").number(now.documents_reused);
  json.key("bytes_read").number(now.bytes_read).key("tuples").number(now.tuples);
  json.key("tuple_documents").number(now.tuple_documents).key("results").number(now.results);
  json.key("shuffle").text(to_string(now.shuffle)).key("spilled_bytes").number(now.spilled_bytes);
  json.key("state").text(state_text(job)).key("progress").real(job.fraction_done, 4);
  json.key("left_seconds").real(seconds_of(job.left), 3);
  json.key("left_error_seconds").real(seconds_of(job.left_error), 3);
  json.key("bound_by").text(job.bound_by).key("dead_letters").number(job.dead_letters);
  json.key("sent_bytes").number(now.sent_bytes).key("busy_seconds").real(seconds_of(job.busy), 3);
  json.key("processor_seconds").real(seconds_of(job.processor), 3);
  json.key("owner").text(job.owner).key("recorded").boolean(job.has_record);
  json.key("live").boolean(job.is_live).key("taken_over").number(job.taken_over);
  add_values(json, "settings", job.settings);
  if (job.is_chain) passes_as_json(job, json);
  json.key("results_removed").boolean(job.results_removed);
  json.key("results_until_unix_us").integer(job.results_until_unix_us);
  json.key("submitted_unix_us").integer(job.submitted_unix_us).key("finished_unix_us").integer(job.finished_unix_us);
  json.key("seconds").real(seconds_of(job), 3).end_object();
  return json.str();
}

std::string progress_as_text(const JobInfo& job) {
  std::string text = fmt::format("progress     {:.1f} %", 100 * job.fraction_done);
  if (job.left != Duration(0)) {
    text += fmt::format(", {:.1f} s +- {:.1f} s left of this phase", seconds_of(job.left), seconds_of(job.left_error));
  }
  text += "\n";
  if (!job.bound_by.empty()) text += fmt::format("bound by     {}\n", job.bound_by);
  return text;
}

std::string as_text(const JobInfo& job) {
  const JobPassInfo& first = job.passes.front();
  const JobPassInfo& now = job.current();
  std::string text = fmt::format("job          {}\napplication  {} on {}", job.id, first.application, first.type);
  for (const auto& [name, value] : first.parameters) {
    const auto lines = std::count(value.begin(), value.end(), '\n');
    text += lines > 0 ? fmt::format(" {}=({} lines)", name, lines) : fmt::format(" {}={}", name, value);
  }
  if (!first.selection.empty()) text += " where " + first.selection;
  text += fmt::format("\nstate        {}\nphase        {}\n", state_text(job), job.phase);
  if (!job.error.is_ok()) text += fmt::format("error        {}\n", job.error.to_string());
  text += passes_as_text(job);
  text += fmt::format("map          {} of {} tasks, {} documents, {} bytes\n", now.map_tasks_done, now.map_tasks,
                      now.documents_read, now.bytes_read);
  text +=
      fmt::format("reduce       {} of {} tasks, {} results\n", now.reduce_tasks_done, now.reduce_tasks, now.results);
  text += fmt::format("repeated     {} tasks\n", now.tasks_repeated);
  text += fmt::format("coverage     {} of {} buckets, {} documents, {} of them dead letters\n", now.map_tasks_done,
                      now.map_tasks, now.documents_read, job.dead_letters);
  if (now.documents_reused != 0) {
    text += fmt::format("reused       {} documents that an earlier run had read\n", now.documents_reused);
  }
  if (!job.has_ended()) text += progress_as_text(job);
  text += fmt::format("owner        {}{}", job.owner, job.is_live || job.has_ended() ? "" : ", which does not answer");
  if (job.taken_over != 0) text += fmt::format("; gone on with {} times by another process", job.taken_over);
  text += fmt::format("\nused         {:.3f} s of computing", seconds_of(job.busy));
  if (job.processor != Duration(0)) text += fmt::format(" ({:.3f} s of processors)", seconds_of(job.processor));
  text += fmt::format(", {} bytes of tuples sent\n", now.sent_bytes);
  if (!job.settings.empty()) {
    text += "settings    ";
    for (const auto& [name, value] : job.settings) text += fmt::format(" {}={}", name, value);
    text += "\n";
  }
  text += fmt::format("shuffle      {}, {} bytes spilled to disk\n", to_string(now.shuffle), now.spilled_bytes);
  if (job.has_ended()) text += fmt::format("time         {:.3f} s\n", seconds_of(job));
  if (const std::string kept = kept_text(job); !kept.empty()) text += fmt::format("kept until   {}\n", kept);
  return text;
}

/// Shows the progress of a job.
class JobProgress {
 public:
  explicit JobProgress(const JobArgs& args) : progress_("job", "docs", Progress::when(args.progress)) {}
  void operator()(const JobInfo& job) { progress_.update(job.fraction_done, job.current().documents_read, job.phase); }

 private:
  Progress progress_;
};

int print_end(const JobInfo& job, const Common& common) {
  print_line(common.json() ? as_json(job) : as_text(job).substr(0, as_text(job).size() - 1));
  if (job.state == JobState::Done) return exit_code_of_done(job);
  complain(fmt::format("job {} {}{}", job.id, job.phase, job.error.is_ok() ? "" : ": " + job.error.to_string()));
  return job.error.is_ok() ? static_cast<int>(kFailed) : failure_code(job.error);
}

Result<JobPassRequest> first_pass(const JobArgs& args) {
  JobPassRequest pass = JobPassRequest::of_application(args.application, args.type, args.selection);
  if (!args.script.empty()) {
    FJORD_TRY_ASSIGN(pass, JobPassRequest::of_script_file(args.script, args.type, args.selection));
    pass.application = args.application;
  }
  FJORD_TRY_ASSIGN(const auto parameters, parse_assignments("--param", args.parameters));
  pass.parameters.insert(parameters.begin(), parameters.end());
  return pass;
}

/// Returns the part of the ids of stored rows: equal command lines replace each other's documents.
std::string name_of(const JobArgs& args, const JobPassRequest& first) {
  if (!args.name.empty()) return args.name;
  std::string text = first.application + first.type + first.selection;
  for (const auto& [name, value] : first.parameters) text += name + "=" + value;
  for (const std::string& json : args.then) text += json;
  return fmt::format("{:016x}", hash64(text));
}

Result<JobRequest> request_of(const JobArgs& args) {
  JobRequest request;
  FJORD_TRY_ASSIGN(JobPassRequest first, first_pass(args));
  const std::string name = name_of(args, first);
  request.passes.push_back(std::move(first));
  for (const std::string& json : args.then) {
    auto pass = JobPassRequest::from_json(json);
    if (!pass) return pass.error().with_context(fmt::format("--then, pass {}", request.passes.size() + 1));
    if (pass->aggregation) {
      pass->aggregation->into_namespace = args.into_namespace;
      pass->aggregation->name = name;
    }
    request.passes.push_back(std::move(*pass));
  }
  request.output_namespace = args.output_namespace;
  request.visitors_per_node = args.visitors_per_node;
  request.output_buckets = args.output_buckets;
  request.shuffle = job_shuffle_from_string(args.shuffle);
  request.incremental = args.incremental;
  FJORD_TRY_ASSIGN(request.settings, parse_assignments("--set", args.settings));
  return request;
}

/// Connects to the cluster and calls `use(jobs)`.
template <typename F>
int with_jobs(const Common& common, F use) {
  Client client = client_of(common);
  if (const Status status = ready(client, common); !status) return report(status);
  return use(client.jobs());
}

void print_done(const JobArgs& args, const char* member, const std::string& text) {
  print_line(args.common.json()
                 ? JsonText().begin_object().key("job").text(args.job).key(member).boolean(true).end_object().str()
                 : text + " " + args.job);
}

std::string list_text(const std::vector<JobInfo>& jobs) {
  std::vector<std::vector<std::string>> rows;
  for (const JobInfo& job : jobs) {
    const JobPassInfo& first = job.passes.front();
    rows.push_back({job.id, first.application, first.type, job.phase, std::to_string(job.current().documents_read),
                    std::to_string(job.dead_letters), std::to_string(job.current().results),
                    fmt::format("{:.3f}", seconds_of(job)), kept_text(job)});
  }
  return table_text({{"JOB"},
                     {"APPLICATION"},
                     {"TYPE"},
                     {"PHASE"},
                     {"DOCUMENTS", true},
                     {"DEAD", true},
                     {"RESULTS", true},
                     {"SECONDS", true},
                     {"KEPT UNTIL"}},
                    std::move(rows));
}

}  // namespace

int run_job_run(const JobArgs& args) {
  const auto request = request_of(args);
  if (!request) return report(request.error());
  return with_jobs(args.common, [&](Jobs jobs) {
    if (!args.wait) {
      const auto id = jobs.submit(*request);
      if (!id) return report(id.error());
      print_line(args.common.json() ? JsonText().begin_object().key("job").text(*id).end_object().str() : *id);
      return static_cast<int>(kOk);
    }
    const auto job = [&] {
      JobProgress progress(args);
      return jobs.run(*request, {.on_submitted = [](const std::string& id) { complain("job " + id + " is running"); },
                                 .on_progress = std::ref(progress)});
    }();
    return job ? print_end(*job, args.common) : report(job.error());
  });
}

int run_job_list(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    const auto list = jobs.list();
    if (!list) return report(list.error());
    if (args.common.json()) {
      for (const JobInfo& job : *list) print_line(as_json(job));
    } else {
      print(list_text(*list));
    }
    return static_cast<int>(kOk);
  });
}

int run_job_show(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    const auto job = jobs.status(args.job);
    if (!job) return report(job.error());
    print(args.common.json() ? as_json(*job) + "\n" : as_text(*job));
    return static_cast<int>(kOk);
  });
}

int run_job_watch(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    const auto job = [&] {
      JobProgress progress(args);
      return jobs.wait(args.job, std::ref(progress));
    }();
    return job ? print_end(*job, args.common) : report(job.error());
  });
}

int run_job_cancel(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    if (const Status status = jobs.cancel(args.job); !status) return report(status);
    print_done(args, "cancelled", "cancelled");
    return static_cast<int>(kOk);
  });
}

namespace {

/// `change` is a member function of Jobs that takes a job's id.
template <typename F>
int control(const JobArgs& args, const char* done, F change) {
  return with_jobs(args.common, [&](Jobs jobs) {
    if (const Status status = change(jobs); !status) {
      // An invalid setting is a usage error; an ended job is a failure.
      const auto job = jobs.status(args.job);
      return job && job->has_ended() ? report_failure(status) : report(status);
    }
    print_done(args, done, done);
    return static_cast<int>(kOk);
  });
}

}  // namespace

int run_job_remove(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    if (const Status status = jobs.remove(args.job); !status) return report_failure(status);
    print_done(args, "removed", "removed");
    return static_cast<int>(kOk);
  });
}
int run_job_pause(const JobArgs& args) {
  return control(args, "paused", [&](Jobs& jobs) { return jobs.pause(args.job); });
}
int run_job_resume(const JobArgs& args) {
  return control(args, "resumed", [&](Jobs& jobs) { return jobs.resume(args.job); });
}
int run_job_set(const JobArgs& args) {
  const auto settings = parse_assignments("SETTING", args.settings);
  if (!settings) return report(settings.error());
  return control(args, "set", [&](Jobs& jobs) { return jobs.set(args.job, *settings); });
}

int run_job_dead_letters(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    const auto letters = jobs.dead_letters(args.job);
    if (!letters) return report(letters.error());
    std::string text;
    for (const auto& [document, error] : *letters) {
      if (args.common.json()) {
        text +=
            JsonText().begin_object().key("document").text(document).key("error").text(error).end_object().str() + "\n";
      } else {
        text += fmt::format("{}\t{}\n", document, error);
      }
    }
    print(text);
    return static_cast<int>(kOk);
  });
}

int run_job_results(const JobArgs& args) {
  return with_jobs(args.common, [&](Jobs jobs) {
    if (args.remove_results) {
      if (const Status status = jobs.remove_results(args.job); !status) return report_failure(status);
      print_done(args, "removed", "removed results of");
      return static_cast<int>(kOk);
    }
    // Distinguishes a job that does not exist from results that cannot be read.
    if (const auto job = jobs.status(args.job); !job) return report(job.error());
    JobRows rows = jobs.results(args.job);
    std::string text;
    for (const auto& [key, value] : rows) {
      if (args.common.json()) {
        text += JsonText().begin_object().key("key").text(key).key("value").raw(value).end_object().str() + "\n";
      } else {
        text += fmt::format("{}\t{}\n", key, value);
      }
    }
    if (!rows.status()) return report_failure(rows.status());
    print(text);
    return static_cast<int>(kOk);
  });
}

}  // namespace fjord::cli
