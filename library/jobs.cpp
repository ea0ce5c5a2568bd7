#include "fjord/library/jobs.h"

#include <fmt/format.h>

#include "fjord/library/detail/job_calls.h"
#include "fjord/library/detail/job_spec.h"
#include "parameters.h"

namespace fjord {

namespace {

/// Bytes of results that JobRows holds.
constexpr std::uint64_t kWindowBytes = std::uint64_t{16} << 20;

/// Returns the job's status from the distributors and from its record.
Result<rpc::JobStatus> find(ClientCore& core, const std::string& id, bool with_dead_letters = false) {
  FJORD_TRY(core.wait_ready());
  rpc::ListJobs request;
  request.job_id = id;
  request.records = true;
  request.dead_letters = with_dead_letters;
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

/// Removes a job or its results. To remove many documents takes longer than one call; a repeated call waits for the
/// removal in progress.
Status removal(ClientCore& core, const std::string& id, rpc::JobAction action) {
  constexpr int kCallsMax = 100;
  Status status(StatusCode::Timeout, "");
  for (int i = 0; i < kCallsMax && status.code() == StatusCode::Timeout; ++i) status = control(core, id, action);
  return status;
}

Result<rpc::JobSpec> spec_of(ClientCore& core, const JobRequest& request) {
  FJORD_TRY(core.refresh());
  return job_spec_of(request, core.types());
}

/// Waits for the end of the job; submits it again if `spec` is not null and no distributor knows it.
Result<JobInfo> wait_for(ClientCore& core, const std::string& id, const rpc::JobSpec* spec,
                         const std::function<void(const JobInfo&)>& on_progress, const std::stop_token& stop) {
  JobWatch watch{.spec = spec, .timeout = core.timeout({}), .stop = stop};
  watch.on_progress = [&](const rpc::JobStatus& job) {
    if (on_progress) on_progress(job_info_of(job));
  };
  FJORD_TRY_ASSIGN(const rpc::ListJobsReply reply, wait_for_job(core.connection(), id, watch));
  return job_info_of(reply.jobs.front());
}

}  // namespace

Result<std::string> Jobs::submit(const JobRequest& request) {
  FJORD_TRY_ASSIGN(const rpc::JobSpec spec, spec_of(*core_, request));
  return core_->connection().sync().submit_job(spec);
}

Result<JobInfo> Jobs::run(const JobRequest& request, const JobCallbacks& callbacks) {
  FJORD_TRY_ASSIGN(const rpc::JobSpec spec, spec_of(*core_, request));
  FJORD_TRY_ASSIGN(const std::string id, core_->connection().sync().submit_job(spec));
  if (callbacks.on_submitted) callbacks.on_submitted(id);
  auto ended = wait_for(*core_, id, &spec, callbacks.on_progress, callbacks.stop);
  if (!ended && callbacks.stop.stop_requested()) static_cast<void>(cancel(id));
  return ended;
}

Result<JobInfo> Jobs::wait(const std::string& id, const std::function<void(const JobInfo&)>& on_progress,
                           const std::stop_token& stop) {
  // Only an unknown job ends the call here: other errors may be over before the wait ends.
  if (Status known = find(*core_, id).status(); known.code() == StatusCode::NotFound) return known;
  return wait_for(*core_, id, nullptr, on_progress, stop);
}

Result<std::vector<JobInfo>> Jobs::list() {
  FJORD_TRY(core_->wait_ready());
  FJORD_TRY_ASSIGN(const std::vector<rpc::JobStatus> jobs, core_->connection().sync().list_jobs());
  std::vector<JobInfo> infos;
  for (const rpc::JobStatus& job : jobs) infos.push_back(job_info_of(job));
  return infos;
}

Result<JobInfo> Jobs::status(const std::string& id) {
  FJORD_TRY_ASSIGN(const rpc::JobStatus job, find(*core_, id));
  return job_info_of(job);
}

Result<std::vector<JobDeadLetter>> Jobs::dead_letters(const std::string& id) {
  FJORD_TRY_ASSIGN(const rpc::JobStatus job, find(*core_, id, true));
  std::vector<JobDeadLetter> letters;
  for (const rpc::DeadLetter& letter : job.dead_letter_list) letters.push_back({letter.document, letter.error});
  return letters;
}

Status Jobs::pause(const std::string& id) { return control(*core_, id, rpc::JobAction::Pause); }
Status Jobs::resume(const std::string& id) { return control(*core_, id, rpc::JobAction::Resume); }
Status Jobs::set(const std::string& id, const std::map<std::string, std::string>& settings) {
  return control(*core_, id, rpc::JobAction::Set, parameters_of(settings));
}
Status Jobs::remove(const std::string& id) { return removal(*core_, id, rpc::JobAction::Remove); }
Status Jobs::remove_results(const std::string& id) { return removal(*core_, id, rpc::JobAction::RemoveResults); }
Status Jobs::cancel(const std::string& id) {
  FJORD_TRY(core_->wait_ready());
  return core_->connection().sync().cancel_job(id);
}

const JobRow* JobRows::next() {
  if (next_ == rows_.size() && !is_over_) read();
  return next_ < rows_.size() ? &rows_[next_++] : nullptr;
}

void JobRows::read() {
  is_over_ = true;  // Unless there are results.
  rows_.clear();
  next_ = 0;
  if (reader_ == nullptr) {
    Result<rpc::JobStatus> job = find(*core_, id_);
    if (!job) {
      status_ = job.error();
      return;
    }
    reader_ = std::make_shared<JobResultReader>(core_->connection(), std::move(*job), kWindowBytes);
  }
  auto results = reader_->next();
  status_ = results.status();
  if (!results || results->empty()) return;
  is_over_ = false;
  rows_.reserve(results->size());
  for (auto& [key, value] : *results) rows_.push_back({std::move(key), std::move(value)});
}

}  // namespace fjord
