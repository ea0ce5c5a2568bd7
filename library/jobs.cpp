#include "fjord/library/jobs.h"

#include <fmt/format.h>

#include "fjord/library/detail/job_calls.h"
#include "fjord/mapreduce/passes.h"

namespace fjord {

namespace {

std::vector<rpc::Parameter> parameters_of(const std::map<std::string, std::string>& values) {
  std::vector<rpc::Parameter> parameters;
  for (const auto& [name, value] : values) parameters.push_back({name, value});
  return parameters;
}

rpc::JobSpec spec_of(const JobRequest& request) {
  rpc::JobSpec spec;
  spec.settings = parameters_of(request.settings);
  spec.incremental = request.incremental;
  spec.output_namespace = request.output_namespace;
  if (request.passes.size() == 1 && request.passes[0].into.type.empty()) {
    const JobPassRequest& only = request.passes[0];
    spec.application = only.application;
    spec.document_type = only.type;
    spec.selection = only.selection;
    spec.parameters = parameters_of(only.parameters);
    return spec;
  }
  for (const JobPassRequest& pass : request.passes) {
    spec.passes.push_back({pass.application,
                           pass.type,
                           pass.selection,
                           parameters_of(pass.parameters),
                           {pass.into.type, pass.into.name_space, pass.into.name}});
  }
  return spec;
}

JobState state_of(const rpc::JobStatus& job) {
  switch (job.phase) {
    case rpc::JobPhase::Done:
      return JobState::Done;
    case rpc::JobPhase::Failed:
      return JobState::Failed;
    case rpc::JobPhase::Cancelled:
      return JobState::Cancelled;
    default:
      break;
  }
  if (job.paused) return JobState::Paused;
  if (!job.live) return JobState::Orphaned;
  return job.phase == rpc::JobPhase::Queued ? JobState::Queued : JobState::Running;
}

JobInfo info_of(const rpc::JobStatus& job) {
  const std::vector<rpc::JobPass> passes = mapreduce::passes_of(job.spec);
  JobInfo info;
  info.id = job.job_id;
  info.state = state_of(job);
  info.phase = phase_text(job.phase);
  info.error = job.error;
  info.application = passes.front().application;
  info.type = passes.front().document_type;
  info.selection = passes.front().selection;
  info.passes = passes.size();
  info.passes_done = info.state == JobState::Done ? passes.size() : job.passes_done.size();
  info.fraction_done = fraction_done(job);
  info.left = Duration(job.left_us);
  info.documents_read = job.documents_read;
  info.dead_letters = job.dead_letters;
  info.results = job.results;
  info.owner = job.owner;
  info.submitted_unix_us = job.submitted_unix_us;
  info.finished_unix_us = job.finished_unix_us;
  return info;
}

/// Returns the job's status from the distributors and from its job record.
Result<rpc::JobStatus> find(ClientCore& core, const std::string& id) {
  FJORD_TRY(core.wait_ready());
  rpc::ListJobs request;
  request.job_id = id;
  request.records = true;
  FJORD_TRY_ASSIGN(rpc::ListJobsReply reply, ask_for_job(core.connection(), std::move(request), core.timeout({})));
  return std::move(reply.jobs.front());
}

Status control(ClientCore& core, const std::string& id, rpc::JobAction action,
               std::vector<rpc::Parameter> settings = {}) {
  FJORD_TRY(core.wait_ready());
  rpc::ControlJob request;
  request.job_id = id;
  request.action = action;
  request.settings = std::move(settings);
  return core.connection().sync().control_job(std::move(request));
}

}  // namespace

std::string_view to_string(JobState state) {
  switch (state) {
    case JobState::Queued:
      return "queued";
    case JobState::Running:
      return "running";
    case JobState::Paused:
      return "paused";
    case JobState::Orphaned:
      return "orphaned";
    case JobState::Done:
      return "done";
    case JobState::Failed:
      return "failed";
    case JobState::Cancelled:
      return "cancelled";
  }
  return "unknown";
}

Result<std::string> Jobs::submit(const JobRequest& request) {
  if (request.passes.empty()) return Status(StatusCode::InvalidArgument, "a job needs at least one pass");
  FJORD_TRY(core_->wait_ready());
  return core_->connection().sync().submit_job(spec_of(request));
}

Result<std::vector<JobInfo>> Jobs::list() {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const std::vector<rpc::JobStatus> jobs, core_->connection().sync().list_jobs());
  std::vector<JobInfo> infos;
  for (const rpc::JobStatus& job : jobs) infos.push_back(info_of(job));
  return infos;
}

Result<JobInfo> Jobs::status(const std::string& id) {
  FJORD_TRY_ASSIGN(const rpc::JobStatus job, find(*core_, id));
  return info_of(job);
}

Result<JobInfo> Jobs::wait(const std::string& id, const std::function<void(const JobInfo&)>& on_progress) {
  FJORD_TRY(core_->wait_ready());
  const auto tell = [&](const rpc::JobStatus& job) {
    if (on_progress) on_progress(info_of(job));
  };
  FJORD_TRY_ASSIGN(const rpc::ListJobsReply reply,
                   wait_for_job(core_->connection(), id, nullptr, core_->timeout({}), 0, tell));
  return info_of(reply.jobs.front());
}

Status Jobs::pause(const std::string& id) { return control(*core_, id, rpc::JobAction::Pause); }
Status Jobs::resume(const std::string& id) { return control(*core_, id, rpc::JobAction::Resume); }
Status Jobs::set(const std::string& id, const std::map<std::string, std::string>& settings) {
  return control(*core_, id, rpc::JobAction::Set, parameters_of(settings));
}
Status Jobs::remove(const std::string& id) { return control(*core_, id, rpc::JobAction::Remove); }
Status Jobs::cancel(const std::string& id) {
  FJORD_TRY(core_->wait_ready());
  return core_->connection().sync().cancel_job(id);
}

Result<std::vector<JobRow>> Jobs::results(const std::string& id) {
  FJORD_TRY_ASSIGN(const rpc::JobStatus job, find(*core_, id));
  return read_results(core_->connection(), job);
}

}  // namespace fjord
