#include "running_jobs.h"

#include <utility>

#include "fjord/common/log.h"

namespace fjord::mapreduce {

void RunningJobs::abandon() {
  for (auto& [id, job] : table_.jobs()) {
    if (job.runner != nullptr) job.runner->abandon();
  }
  long_tasks_.end();
}

LocalJob& RunningJobs::add(JobState state, std::uint64_t revision) {
  LocalJob& job = table_.add(std::move(state));
  make_writer(job.state.job_id, job, revision);
  return job;
}

void RunningJobs::enqueue(const std::string& id) {
  queue_.push_back(id);
  start_queued();
}

// --- Records

JobState RunningJobs::record_of(const LocalJob& job) const {
  JobState record = job.runner == nullptr || is_over(job.runner->phase()) ? job.state : job.runner->report().record();
  record.owner = context_.options.name;
  record.owner_id = context_.own_id;
  record.epoch = job.state.epoch;
  record.cancel_wanted = job.state.cancel_wanted;
  if (job.are_rows_on_the_way) {
    record.phase = rpc::JobPhase::CleanUp;
    record.outcome = rpc::JobPhase::Done;
    record.finished_unix_us = 0;
  }
  return record;
}

void RunningJobs::make_writer(const std::string& id, LocalJob& job, std::uint64_t revision) {
  JobRecordWriter::Callbacks callbacks;
  callbacks.current = [this, id] { return record_of(table_.at(id)); };
  callbacks.on_wanted = [this, id](const JobState& record) { wanted(id, record); };
  callbacks.on_lost = [this, id](const JobState& record) { lost(id, record); };
  job.writer = std::make_shared<JobRecordWriter>(context_.records, context_.mailbox, context_.clock, context_.executor,
                                                 std::move(callbacks), revision);
}

void RunningJobs::wanted(const std::string& id, const JobState& record) {
  LocalJob& job = table_.at(id);
  if (is_over(job.state.phase)) return;
  const auto control = [&](rpc::JobAction action) {
    rpc::ControlJob request;
    request.job_id = id;
    request.action = action;
    request.settings = record.settings;
    (void)apply(job, id, request).is_ok();  // valid: it was checked when it was requested
  };
  if (record.settings != job.state.settings) control(rpc::JobAction::Set);
  if (record.paused != job.state.paused) control(record.paused ? rpc::JobAction::Pause : rpc::JobAction::Resume);
  if (record.cancel_wanted && !job.state.cancel_wanted) control(rpc::JobAction::Cancel);
}

/// Drops a job that another process has taken over.
void RunningJobs::lost(const std::string& id, const JobState& record) {
  context_.metrics.lost.add();
  auto node = table_.extract(id);
  if (node.empty()) return;
  LocalJob& job = node.mapped();
  std::erase(queue_, id);
  for (auto& [spec, respond] : job.submitters) {
    const bool is_same = spec == record.spec;
    respond(rpc::SubmitJobReply{
        is_same ? Status::ok() : Status(StatusCode::AlreadyExists, "there is another job " + id), id});
  }
  for (auto& [number, waiter] : job.waiters) waiter.respond(rpc::ListJobsReply{});
  if (job.runner != nullptr) {
    // Deferred: the runner may be on the stack.
    context_.executor.post([runner = std::shared_ptr<JobRunner>(std::move(job.runner))] {});
  }
  start_queued();
}

/// True if another process may take the job over soon: the ownership is unconfirmed for the lease less one renew
/// interval.
bool RunningJobs::may_be_lost(const LocalJob& job) const {
  const JobServiceOptions& options = context_.options;
  return job.writer->has_record() && job.writer->unconfirmed() + options.renew_interval >= options.lease;
}

void RunningJobs::renew_later() {
  context_.executor.post_after(context_.options.renew_interval, [this] {
    for (auto& [id, job] : table_.jobs()) {
      if (!job.writer->has_record() || is_over(job.state.phase)) continue;
      job.writer->save({});
      if (job.runner != nullptr && job.runner->puts_documents() && may_be_lost(job)) stand_down(id, job);
    }
    renew_later();
  });
}

/// Stops a runner that puts documents, because another process may have taken the job over or may do so soon. Once
/// that process has ended the job, a further job may put newer rows under the same ids, and late puts of this process
/// would replace them. So this process puts nothing until a write of the record succeeds, and then continues from the
/// record.
void RunningJobs::stand_down(const std::string& id, LocalJob& job) {
  log::warning("job", "{}: its record could not be written for {:.1f} s; until it can, no documents are put", id,
               static_cast<double>(job.writer->unconfirmed().count()) / 1e6);
  job.state = record_of(job);
  job.waits_for = "its record, which cannot be written";
  job.runner.reset();
  job.writer->save([this, id, number = job.number] {
    context_.mailbox.post([this, id, number] {
      const LocalJob* known = table_.find(id, number);
      if (known == nullptr || known->runner != nullptr || is_over(known->state.phase)) return;
      start(id);
    });
  });
}

// --- Running

Status RunningJobs::apply(LocalJob& job, const std::string& id, const rpc::ControlJob& request) {
  switch (request.action) {
    case rpc::JobAction::Pause:
      job.state.paused = true;
      if (job.runner != nullptr) job.runner->pause();
      start_queued();
      return Status::ok();
    case rpc::JobAction::Resume:
      job.state.paused = false;
      if (job.runner != nullptr) job.runner->resume();
      return Status::ok();
    case rpc::JobAction::Set: {
      auto settings = merge_settings(job.runner != nullptr ? job.runner->report().state().settings : job.state.settings,
                                     request.settings);
      if (const auto parsed = JobSettings::parse(settings); !parsed) return parsed.error();
      job.state.settings = settings;
      if (job.runner != nullptr) job.runner->apply(std::move(settings));
      return Status::ok();
    }
    case rpc::JobAction::Cancel:
      cancel(job, id);
      return Status::ok();
    case rpc::JobAction::Remove:
    case rpc::JobAction::RemoveResults:
    case rpc::JobAction::Unknown:
      break;
  }
  return Status(StatusCode::InvalidArgument,
                "the action on a job is missing, or of a newer release: pause, resume, cancel, set, remove or "
                "remove_results");
}

void RunningJobs::cancel(LocalJob& job, const std::string& id) {
  job.state.cancel_wanted = true;
  if (job.runner != nullptr) return job.runner->cancel();
  std::erase(queue_, id);
  if (job.state.bits != 0) {
    start(id);  // the job has begun, so its runner must remove documents
    return;
  }
  job.state.phase = rpc::JobPhase::Cancelled;
  job.state.error = Status(StatusCode::Cancelled, "the job was cancelled before it began");
  over(id, job);
}

void RunningJobs::start_queued() {
  while (!queue_.empty() && table_.running() < context_.options.running_max) {
    const std::string id = queue_.front();
    queue_.pop_front();
    start(id);
  }
  context_.metrics.running.set(static_cast<double>(table_.running()));
}

void RunningJobs::start(const std::string& id) {
  LocalJob& job = table_.at(id);
  job.waits_for.clear();
  const RunnerEnvironment environment{context_.options,
                                      context_.clock,
                                      context_.transport,
                                      context_.snapshot,
                                      context_.executor,
                                      context_.bulk,
                                      static_cast<std::uint64_t>(context_.task_memory.value()),
                                      static_cast<std::uint64_t>(context_.job_memory.value()),
                                      context_.applications,
                                      guard_.share_percent(),
                                      context_.records,
                                      context_.mailbox,
                                      [this](Task task) { long_tasks_.run(std::move(task)); }};
  job.runner =
      std::make_unique<JobRunner>(job.state, environment, context_.random.fork(), callbacks_for(id, job.number));
  job.runner->start();
  guard_.begin();
}

RunnerCallbacks RunningJobs::callbacks_for(const std::string& id, std::uint64_t number) {
  RunnerCallbacks callbacks;
  callbacks.on_finished = [this, id, number] {
    // Deferred: the runner is about to be destroyed and must not be on the stack.
    context_.mailbox.post([this, id, number] {
      if (table_.find(id, number) != nullptr) on_finished(id);
    });
  };
  callbacks.commit = [this, id, number](std::function<void()> then) {
    if (table_.find(id, number) == nullptr) return;  // the job was lost to another process
    // `then` is posted, so that it never runs inside a callback of a session or of the writer.
    save(id, [this, then = std::move(then)] { context_.executor.post(then); });
  };
  callbacks.is_owner = [this, id, number] {
    const LocalJob* known = table_.find(id, number);
    return known != nullptr && !may_be_lost(*known);
  };
  callbacks.save_rows = [this, id, number](JobRows rows, auto done) {
    if (LocalJob* known = table_.find(id, number)) known->writer->save_rows(std::move(rows), std::move(done));
  };
  callbacks.load_rows = [this, id, number](auto done) {
    if (LocalJob* known = table_.find(id, number)) known->writer->load_rows(std::move(done));
  };
  return callbacks;
}

// --- Jobs that have ended

void RunningJobs::on_finished(const std::string& id) {
  LocalJob& job = table_.at(id);
  const std::uint64_t epoch = job.state.epoch;
  const bool cancel_wanted = job.state.cancel_wanted;
  job.state = job.runner->report().state();
  job.state.epoch = epoch;
  job.state.cancel_wanted = cancel_wanted;
  if (job.state.phase == rpc::JobPhase::Done && job.runner->has_rows()) table_.keep_rows(job, job.runner->take_rows());
  // This call was posted, so the runner is not on the stack. From here on the record is made of job.state.
  job.runner.reset();
  over(id, job);
  start_queued();
}

void RunningJobs::over(const std::string& id, LocalJob& job) {
  JobMetrics& metrics = context_.metrics;
  job.state.finished_unix_us = context_.clock.wall_now().us;
  job.state.paused = false;
  metrics.dead_letters.add(job.state.dead_letters.size());
  (job.state.phase == rpc::JobPhase::Done     ? metrics.done
   : job.state.phase == rpc::JobPhase::Failed ? metrics.failed
                                              : metrics.cancelled)
      .add();
  if (!job.state.error) log::info("job", "{} ended: {}", id, job.state.error.to_string());
  answers_.answer_waiters(job);
  table_.note_ended(id);
  if (job.writer->has_record()) record_end(id, job);
  table_.forget_oldest();
}

/// Writes the record of an ended job. A client that sees the job done reads its results, so they are stored before the
/// record says so.
void RunningJobs::record_end(const std::string& id, LocalJob& job) {
  if (!job.has_rows || job.row_bytes > context_.options.recorded_rows_bytes) return save(id);
  job.are_rows_on_the_way = true;
  job.writer->save_rows(job.rows, [this, id, number = job.number](const Status& status) {
    if (!status) log::warning("job", "{}: the results are only in memory: {}", id, status.to_string());
    LocalJob* known = table_.find(id, number);
    if (known == nullptr) return;
    known->are_rows_on_the_way = false;
    save(id);
  });
}

}  // namespace fjord::mapreduce
