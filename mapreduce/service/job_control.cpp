#include "job_control.h"

#include <memory>
#include <utility>

namespace fjord::mapreduce {
namespace {

/// The answer to a request about a job that has ended: nothing is left to cancel.
Status of_ended_job(const rpc::ControlJob& request) {
  if (request.action == rpc::JobAction::Cancel) return Status::ok();
  return {StatusCode::InvalidArgument, "the job has ended"};
}

}  // namespace

void JobControl::control(const rpc::ControlJob& request, UniqueFunction<void(Status)> done) {
  if (request.action == rpc::JobAction::Remove || request.action == rpc::JobAction::RemoveResults) {
    return removals_.remove(request, std::move(done));
  }
  LocalJob* const job = table_.find(request.job_id);
  if (job == nullptr && request.records) return control_record(request, std::move(done));
  if (job == nullptr) {
    return done(Status(StatusCode::NotFound, "there is no job " + request.job_id + " at this distributor"));
  }
  if (is_over(job->state.phase)) return done(of_ended_job(request));
  if (Status status = running_.apply(*job, request.job_id, request); !status) return done(std::move(status));
  // Nothing is written for a cancelled job, which ends now, or for a job that may end without ever getting a record.
  const bool is_kept = request.action != rpc::JobAction::Cancel && (job->writer->has_record() || job->state.paused);
  if (!is_kept) return done(Status::ok());
  running_.save(request.job_id, [answer = std::make_shared<UniqueFunction<void(Status)>>(std::move(done))] {
    (*answer)(Status::ok());
  });
}

/// Writes a request into the record of another process's job. The owner sees it at its next write, a new owner when it
/// takes the job over.
void JobControl::control_record(const rpc::ControlJob& request, UniqueFunction<void(Status)> done) {
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  context_.records.read(request.job_id, context_.mailbox, [this, request, shared](Result<JobState> found) {
    if (!found) return (*shared)(found.error());
    if (is_over(found->phase)) return (*shared)(of_ended_job(request));
    JobState record = std::move(*found);
    if (request.action == rpc::JobAction::Set) {
      record.settings = merge_settings(record.settings, request.settings);
      if (const auto parsed = JobSettings::parse(record.settings); !parsed) return (*shared)(parsed.error());
    }
    record.cancel_wanted = record.cancel_wanted || request.action == rpc::JobAction::Cancel;
    if (request.action == rpc::JobAction::Pause) record.paused = true;
    if (request.action == rpc::JobAction::Resume) record.paused = false;
    const std::uint64_t expected = record.revision++;
    context_.records.write(std::move(record), expected, context_.mailbox,
                           [shared](Status status) { (*shared)(std::move(status)); });
  });
}

}  // namespace fjord::mapreduce
