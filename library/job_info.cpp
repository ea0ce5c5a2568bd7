#include "fjord/library/detail/job_calls.h"
#include "fjord/library/detail/job_spec.h"
#include "fjord/mapreduce/passes.h"
#include "parameters.h"

namespace fjord {

namespace {

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

/// Copies the figures that rpc::JobStatus has of the current pass, and rpc::PassStatus of a finished one.
template <typename Figures>
void take_pass_figures(const Figures& from, JobPassInfo& pass) {
  pass.shuffle = static_cast<JobShuffle>(from.shuffle);
  pass.map_tasks = from.map_tasks;
  pass.map_tasks_done = from.map_tasks_done;
  pass.reduce_tasks = from.reduce_tasks;
  pass.reduce_tasks_done = from.reduce_tasks_done;
  pass.tasks_repeated = from.tasks_repeated;
  pass.documents_read = from.documents_read;
  pass.documents_reused = from.documents_reused;
  pass.bytes_read = from.bytes_read;
  pass.dead_letters = from.dead_letters;
  pass.tuples = from.tuples;
  pass.tuple_documents = from.tuple_documents;
  pass.sent_bytes = from.sent_bytes;
  pass.spilled_bytes = from.spilled_bytes;
  pass.results = from.results;
  pass.documents_put = from.documents_put;
  pass.documents_removed = from.documents_removed;
}

/// Returns the pass with index `at`. It has final figures if it has ended, present ones if it runs, and none if it has
/// not begun.
JobPassInfo pass_of(const rpc::JobStatus& job, const rpc::JobPass& spec, std::size_t at) {
  JobPassInfo pass;
  pass.application = spec.application;
  pass.type = spec.document_type;
  pass.selection = spec.selection;
  pass.parameters = map_of(spec.parameters);
  pass.into = {spec.into.type, spec.into.name_space, spec.into.name};
  if (at < job.passes_done.size()) {
    pass.state = "done";
    take_pass_figures(job.passes_done[at], pass);
  } else if (at == job.passes_done.size()) {
    pass.state = phase_text(job.phase);
    take_pass_figures(job, pass);
    // The job's number of dead letters includes those of the finished passes.
    for (const rpc::PassStatus& before : job.passes_done) pass.dead_letters -= before.dead_letters;
  } else {
    pass.state = "waiting";
  }
  return pass;
}

}  // namespace

JobInfo job_info_of(const rpc::JobStatus& job) {
  JobInfo info;
  info.id = job.job_id;
  info.state = state_of(job);
  info.phase = phase_text(job.phase);
  info.error = job.error;
  for (const rpc::JobPass& pass : mapreduce::passes_of(job.spec)) {
    info.passes.push_back(pass_of(job, pass, info.passes.size()));
  }
  info.passes_done = info.state == JobState::Done ? info.passes.size() : job.passes_done.size();
  info.is_chain = !job.spec.passes.empty();
  info.fraction_done = fraction_done(job);
  info.left = Duration(job.left_us);
  info.left_error = Duration(job.left_error_us);
  info.bound_by = job.bound_by;
  info.dead_letters = job.dead_letters;
  info.settings = map_of(job.settings);
  info.output_namespace = job.spec.output_namespace;
  info.owner = job.owner;
  info.is_live = job.live;
  info.has_record = job.epoch != 0 && job.revision != 0;
  info.taken_over = job.taken_over;
  info.busy = Duration(static_cast<std::int64_t>(job.busy_us));
  info.processor = Duration(static_cast<std::int64_t>(job.processor_us));
  info.submitted_unix_us = job.submitted_unix_us;
  info.finished_unix_us = job.finished_unix_us;
  info.results_until_unix_us = job.results_until_unix_us;
  info.results_removed = job.results_removed;
  return info;
}

std::uint64_t JobInfo::documents_read() const {
  std::uint64_t documents = 0;
  for (const JobPassInfo& pass : passes) documents += pass.documents_read;
  return documents;
}

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

std::string_view to_string(JobShuffle shuffle) {
  if (shuffle == JobShuffle::Direct) return "direct";
  return shuffle == JobShuffle::Store ? "store" : "auto";
}

JobShuffle job_shuffle_from_string(std::string_view text) {
  if (text == "direct") return JobShuffle::Direct;
  return text == "store" ? JobShuffle::Store : JobShuffle::Auto;
}

}  // namespace fjord
