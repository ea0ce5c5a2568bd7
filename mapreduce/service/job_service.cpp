#include "fjord/mapreduce/job_service.h"

#include <algorithm>
#include <utility>

#include "application_coverage.h"
#include "fjord/common/log.h"
#include "fjord/document/selection.h"
#include "fjord/mapreduce/passes.h"
#include "fjord/mapreduce/task_visitors.h"
#include "job_service_impl.h"

namespace fjord::mapreduce {
namespace {

constexpr std::uint32_t kOutputBucketsMax = 1024;
constexpr std::uint32_t kVisitorsMax = 1024;

Status not_here(const std::string& job) {
  return Status(StatusCode::NotFound, "there is no job " + job + " at this distributor");
}

}  // namespace

Status check_job(const std::string& job_id, const rpc::JobSpec& spec, const ApplicationRegistry& applications,
                 const std::shared_ptr<const DocumentTypeRepo>& types) {
  if (!is_plain_name(job_id)) {
    return Status(StatusCode::InvalidArgument,
                  "a job id is 1 to 64 letters, digits, dots, minuses and underscores, not \"" + job_id + "\"");
  }
  FJORD_TRY(check_passes(spec, job_id, applications, types));
  if (!spec.output_namespace.empty() && !is_plain_name(spec.output_namespace)) {
    return Status(StatusCode::InvalidArgument, "no namespace: \"" + spec.output_namespace + "\"");
  }
  if (spec.output_buckets > kOutputBucketsMax || spec.visitors_per_node > kVisitorsMax) {
    return Status(StatusCode::InvalidArgument, "at most 1024 output buckets and 1024 visitors per node");
  }
  if (spec.incremental && spec.shuffle == rpc::Shuffle::Store) {
    return Status(StatusCode::InvalidArgument, "an incremental job has the shuffle direct, not store");
  }
  if (spec.incremental) {
    FJORD_TRY_ASSIGN(const Selection selection, Selection::parse(passes_of(spec).front().selection, *types));
    if (selection.needs_now()) {
      return Status(StatusCode::InvalidArgument, "what an incremental job selects cannot depend on now()");
    }
  }
  return JobSettings::parse(spec.settings).status();
}

JobService::Impl::Impl(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport,
                       rpc::SnapshotHolder& snapshot, const ApplicationRegistry& applications, JobRecords& records)
    : options_(options),
      clock_(runtime.clock),
      scheduler_(runtime.scheduler),
      bulk_(runtime.bulk),
      transport_(transport),
      snapshot_(snapshot),
      applications_(applications),
      records_(records),
      random_(runtime.random.fork()),
      metrics_(runtime.metrics),
      task_memory_(runtime.tunables.declare("mapreduce.task_memory_bytes")),
      job_memory_(runtime.tunables.declare("mapreduce.job_memory_bytes")),
      p99_target_(runtime.tunables.declare("mapreduce.foreground_p99_target_ms")),
      results_retention_(runtime.tunables.declare("mapreduce.results_retention")),
      foreground_(runtime.metrics.histogram("fjord_distributor_foreground_seconds",
                                            "From arrival to answer, of operations that are not in the background")),
      executor_(runtime.scheduler.make_interactive_executor("jobs")),
      mailbox_(*executor_),
      own_id_(random_.next() >> 1 | 1) {
  metrics_.share.set(100);
  scan_later(std::min<Duration>(options_.scan_interval, seconds(1)));
  renew_later();
}

// --- Calls

void JobService::Impl::submit(const rpc::SubmitJob& request, rpc::Responder respond, std::size_t covered) {
  const auto answer = [&](Status status) { respond(rpc::SubmitJobReply{std::move(status), request.job_id}); };
  if (const auto it = jobs_.find(request.job_id); it != jobs_.end()) {
    if (it->second.state.spec != request.spec) {
      return answer(Status(StatusCode::AlreadyExists, "there is another job " + request.job_id));
    }
    const auto waiting = submitting_.find(request.job_id);
    if (waiting == submitting_.end()) return answer(Status::ok());
    waiting->second.emplace_back(request.spec, std::move(respond));
    return;
  }
  if (options_.refresh_snapshot) options_.refresh_snapshot();
  const auto snapshot = snapshot_.get();
  // The first snapshot may only name the leading fleet controller.
  if (snapshot == nullptr || snapshot->state_version() == 0)
    return answer(Status(StatusCode::NotReady, "this distributor has no cluster state yet"));
  const std::vector<rpc::JobPass> passes = passes_of(request.spec);
  if (Status status = check_job(request.job_id, request.spec, applications_, snapshot->types()); !status) {
    const bool is_unknown = std::any_of(passes.begin(), passes.end(), [&](const rpc::JobPass& pass) {
      return applications_.find(pass.application) == nullptr;
    });
    return answer(is_unknown && !options_.name.empty() ? status.from_node(options_.name) : std::move(status));
  }
  std::vector<std::string> versions;
  for (const rpc::JobPass& pass : passes) versions.push_back(applications_.find(pass.application)->version);
  while (covered < versions.size() && versions[covered].empty()) ++covered;
  if (covered < versions.size()) {
    ask_for_application(transport_, *snapshot, *executor_, *applications_.find(passes[covered].application),
                        [this, request, covered, respond = std::move(respond)](const Status& status) mutable {
                          if (status) return submit(request, std::move(respond), covered + 1);
                          respond(rpc::SubmitJobReply{status, request.job_id});
                        });
    return;
  }
  const auto first = plan_pass(request.spec, request.job_id, 0, applications_, snapshot->types());
  const bool may_be_direct = first->application->is_aggregation() || request.spec.incremental;
  const bool is_direct =
      request.spec.shuffle == rpc::Shuffle::Direct || (request.spec.shuffle == rpc::Shuffle::Auto && may_be_direct);
  JobState state;
  state.job_id = request.job_id;
  state.spec = request.spec;
  state.settings = merge_settings({}, request.spec.settings);
  state.phase = rpc::JobPhase::Queued;
  if (request.spec.passes.empty()) {
    state.application_version = versions.front();
  } else if (std::any_of(versions.begin(), versions.end(), [](const auto& version) { return !version.empty(); })) {
    state.application_versions = std::move(versions);
  }
  state.submitted_unix_us = clock_.wall_now().us;
  Job& job = add(std::move(state), false);
  metrics_.submitted.add();
  const std::uint64_t number = job.number;
  if (is_direct) {
    queue_.push_back(request.job_id);
    answer(Status::ok());
    executor_->post_after(options_.record_after, [this, id = request.job_id, number] {
      if (Job* late = find(id, number); late != nullptr && !is_over(late->state.phase)) save(id);
    });
    start_queued();
    return;
  }
  submitting_[request.job_id].emplace_back(request.spec, std::move(respond));
  save(request.job_id, [this, id = request.job_id] {
    if (!is_over(jobs_.at(id).state.phase)) queue_.push_back(id);  // not if cancelled meanwhile
    for (auto& [spec, waiting] : std::exchange(submitting_[id], {})) waiting(rpc::SubmitJobReply{Status::ok(), id});
    submitting_.erase(id);
    start_queued();
  });
}

void JobService::Impl::list(const rpc::ListJobs& request, rpc::Responder respond) {
  const auto it = request.job_id.empty() ? jobs_.end() : jobs_.find(request.job_id);
  if (it == jobs_.end() && request.records) {
    request.job_id.empty() ? list_records(request, std::move(respond)) : read_record(request, std::move(respond));
    return;
  }
  if (request.results_bytes_max != 0 && it != jobs_.end() && has_kept_rows(it->second)) {
    read_kept_rows(request, std::move(respond));
    return;
  }
  if (request.wait_us <= 0 || it == jobs_.end() || is_over(it->second.state.phase)) {
    respond(answer_to(request));
    return;
  }
  const std::uint64_t waiter = next_waiter_++;
  const std::uint64_t number = it->second.number;
  it->second.waiters.emplace(waiter, Waiter{request, std::move(respond)});
  executor_->post_after(std::min(Duration(request.wait_us), options_.wait_max),
                        [this, id = request.job_id, number, waiter] {
                          Job* job = find(id, number);
                          if (job == nullptr) return;
                          if (auto found = job->waiters.extract(waiter)) {
                            found.mapped().respond(answer_to(found.mapped().request));
                          }
                        });
}

void JobService::Impl::control(const rpc::ControlJob& request, UniqueFunction<void(Status)> done) {
  if (request.action == rpc::JobAction::Remove || request.action == rpc::JobAction::RemoveResults) {
    return remove(request, std::move(done));
  }
  const auto it = jobs_.find(request.job_id);
  if (it == jobs_.end()) {
    if (request.records) return control_record(request, std::move(done));
    return done(not_here(request.job_id));
  }
  Job& job = it->second;
  if (is_over(job.state.phase)) {
    const bool is_fine = request.action == rpc::JobAction::Cancel;
    return done(is_fine ? Status::ok() : Status(StatusCode::InvalidArgument, "the job has ended"));
  }
  if (Status status = apply(job, request.job_id, request); !status) return done(std::move(status));
  // Nothing is written for a cancelled job, which ends now, or for a job that may end without ever getting a record.
  const bool is_kept = request.action != rpc::JobAction::Cancel && (job.writer->has_record() || job.state.paused);
  if (!is_kept) return done(Status::ok());
  save(request.job_id,
       [answer = std::make_shared<UniqueFunction<void(Status)>>(std::move(done))] { (*answer)(Status::ok()); });
}

Status JobService::Impl::apply(Job& job, const std::string& id, const rpc::ControlJob& request) {
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
      auto settings =
          merge_settings(job.runner != nullptr ? job.runner->state().settings : job.state.settings, request.settings);
      if (const auto parsed = JobSettings::parse(settings); !parsed) return parsed.error();
      job.state.settings = settings;
      if (job.runner != nullptr) job.runner->apply(std::move(settings));
      return Status::ok();
    }
    case rpc::JobAction::Cancel:
      job.state.cancel_wanted = true;
      if (job.runner != nullptr) {
        job.runner->cancel();
      } else if (job.state.bits != 0) {
        std::erase(queue_, id);
        start(id);  // it has begun, so its documents must be removed
      } else {
        std::erase(queue_, id);
        job.state.phase = rpc::JobPhase::Cancelled;
        job.state.error = Status(StatusCode::Cancelled, "the job was cancelled before it began");
        over(id, job);
      }
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

/// Writes a request into the record of another process's job. The owner sees it at its next write, a new owner when it
/// takes the job over.
void JobService::Impl::control_record(const rpc::ControlJob& request, UniqueFunction<void(Status)> done) {
  auto shared = std::make_shared<UniqueFunction<void(Status)>>(std::move(done));
  records_.read(request.job_id, mailbox_, [this, request, shared](Result<JobState> found) {
    if (!found) return (*shared)(found.error());
    if (is_over(found->phase)) {
      const bool is_fine = request.action == rpc::JobAction::Cancel;
      return (*shared)(is_fine ? Status::ok() : Status(StatusCode::InvalidArgument, "the job has ended"));
    }
    JobState record = std::move(*found);
    if (request.action == rpc::JobAction::Set) {
      record.settings = merge_settings(record.settings, request.settings);
      if (const auto parsed = JobSettings::parse(record.settings); !parsed) return (*shared)(parsed.error());
    }
    record.cancel_wanted = record.cancel_wanted || request.action == rpc::JobAction::Cancel;
    if (request.action == rpc::JobAction::Pause) record.paused = true;
    if (request.action == rpc::JobAction::Resume) record.paused = false;
    const std::uint64_t expected = record.revision++;
    records_.write(std::move(record), expected, mailbox_, [shared](Status status) { (*shared)(std::move(status)); });
  });
}

// --- Jobs

JobService::Impl::Job& JobService::Impl::add(JobState state, bool is_recorded) {
  const std::string id = state.job_id;
  Job& job = jobs_[id];
  job.number = next_number_++;
  const std::uint64_t revision = is_recorded ? state.revision : 0;
  job.state = std::move(state);
  job.state.epoch = std::max<std::uint64_t>(1, job.state.epoch);
  make_writer(id, job, revision);
  return job;
}

JobState JobService::Impl::record_of(const Job& job) const {
  JobState record = job.runner == nullptr || is_over(job.runner->phase()) ? job.state : job.runner->record();
  record.owner = options_.name;
  record.owner_id = own_id_;
  record.epoch = job.state.epoch;
  record.cancel_wanted = job.state.cancel_wanted;
  if (job.are_rows_on_the_way) {
    record.phase = rpc::JobPhase::CleanUp;
    record.outcome = rpc::JobPhase::Done;
    record.finished_unix_us = 0;
  }
  return record;
}

void JobService::Impl::make_writer(const std::string& id, Job& job, std::uint64_t revision) {
  JobRecordWriter::Callbacks callbacks;
  callbacks.current = [this, id] { return record_of(jobs_.at(id)); };
  callbacks.on_wanted = [this, id](const JobState& record) { wanted(id, record); };
  callbacks.on_lost = [this, id](const JobState& record) { lost(id, record); };
  job.writer = std::make_shared<JobRecordWriter>(records_, mailbox_, clock_, *executor_, std::move(callbacks), revision,
                                                 options_.sabotage.ignore_owners);
}

JobService::Impl::Job* JobService::Impl::find(const std::string& id, std::uint64_t number) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() || it->second.number != number ? nullptr : &it->second;
}

void JobService::Impl::save(const std::string& id, std::function<void()> then) {
  jobs_.at(id).writer->save(std::move(then));
}

void JobService::Impl::wanted(const std::string& id, const JobState& record) {
  Job& job = jobs_.at(id);
  if (is_over(job.state.phase)) return;
  const auto control = [&](rpc::JobAction action) {
    rpc::ControlJob request;
    request.job_id = id;
    request.action = action;
    request.settings = record.settings;
    (void)apply(job, id, request).is_ok();  // validated when it was requested
  };
  if (record.settings != job.state.settings) control(rpc::JobAction::Set);
  if (record.paused != job.state.paused) control(record.paused ? rpc::JobAction::Pause : rpc::JobAction::Resume);
  if (record.cancel_wanted && !job.state.cancel_wanted) control(rpc::JobAction::Cancel);
}

/// Drops a job that another process has taken over.
void JobService::Impl::lost(const std::string& id, const JobState& record) {
  metrics_.lost.add();
  auto node = jobs_.extract(id);
  if (node.empty()) return;
  Job& job = node.mapped();
  std::erase(queue_, id);
  std::erase(finished_, id);
  rows_bytes_ -= job.row_bytes;
  if (const auto waiting = submitting_.extract(id)) {
    for (auto& [spec, respond] : waiting.mapped()) {
      const bool is_same = spec == record.spec;
      respond(rpc::SubmitJobReply{
          is_same ? Status::ok() : Status(StatusCode::AlreadyExists, "there is another job " + id), id});
    }
  }
  for (auto& [number, waiter] : job.waiters) waiter.respond(rpc::ListJobsReply{});
  if (job.runner != nullptr) {
    // Deferred: the runner may be on the stack.
    executor_->post([runner = std::shared_ptr<JobRunner>(std::move(job.runner))] {});
  }
  start_queued();
}

std::size_t JobService::Impl::running() const {
  return static_cast<std::size_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const auto& one) {
    return one.second.runner != nullptr && !one.second.runner->is_paused();
  }));
}

void JobService::Impl::start_queued() {
  while (!queue_.empty() && running() < options_.running_max) {
    const std::string id = queue_.front();
    queue_.pop_front();
    start(id);
  }
  metrics_.running.set(static_cast<double>(running()));
}

void JobService::Impl::run_long(Task task) {
  if (idle_executors_.empty()) {
    long_executors_.push_back(scheduler_.make_interactive_executor("reduce"));
    idle_executors_.push_back(long_executors_.back().get());
  }
  Executor* const executor = idle_executors_.back();
  idle_executors_.pop_back();
  executor->post([this, executor, task = std::move(task), mailbox = mailbox_]() mutable {
    task();
    mailbox.post([this, executor] { idle_executors_.push_back(executor); });
  });
}

void JobService::Impl::start(const std::string& id) {
  Job& job = jobs_.at(id);
  job.waits_for.clear();
  const std::uint64_t number = job.number;
  const RunnerEnvironment environment{options_,
                                      clock_,
                                      transport_,
                                      snapshot_,
                                      *executor_,
                                      bulk_,
                                      static_cast<std::uint64_t>(task_memory_.value()),
                                      static_cast<std::uint64_t>(job_memory_.value()),
                                      applications_,
                                      share_percent_,
                                      records_,
                                      mailbox_,
                                      [this](Task task) { run_long(std::move(task)); }};
  RunnerCallbacks callbacks;
  callbacks.on_finished = [this, id, number] {
    // Deferred: the runner is about to be destroyed and must not be on the stack.
    mailbox_.post([this, id, number] {
      if (find(id, number) != nullptr) on_finished(id);
    });
  };
  callbacks.commit = [this, id, number](std::function<void()> then) {
    if (find(id, number) == nullptr) return;  // the job was lost
    // `then` is posted, so that it never runs inside a callback of a session or of the writer.
    save(id, [this, then = std::move(then)] { executor_->post(then); });
  };
  callbacks.is_owner = [this, id, number] {
    const Job* known = find(id, number);
    return known != nullptr && !may_be_lost(*known);
  };
  callbacks.save_rows = [this, id, number](JobRows rows, auto done) {
    if (Job* known = find(id, number)) known->writer->save_rows(std::move(rows), std::move(done));
  };
  callbacks.load_rows = [this, id, number](auto done) {
    if (Job* known = find(id, number)) known->writer->load_rows(std::move(done));
  };
  job.runner = std::make_unique<JobRunner>(job.state, environment, random_.fork(), std::move(callbacks));
  job.runner->start();
  guard_later();
}

/// True if another process may take the job over soon: the ownership is unconfirmed for the lease less one renew
/// interval.
bool JobService::Impl::may_be_lost(const Job& job) const {
  return job.writer->has_record() && job.writer->unconfirmed() + options_.renew_interval >= options_.lease;
}

/// Stops a runner that puts documents, because another process may have taken the job over or may do so soon. When that
/// process has ended the job, yet another job may put newer rows under the ids of this job's documents, and late puts
/// of this process would replace them. This process puts no more until a write of the record succeeds, and then
/// continues from the record.
void JobService::Impl::stand_down(const std::string& id, Job& job) {
  log::warning("job", "{}: its record could not be written for {:.1f} s; until it can, no documents are put", id,
               static_cast<double>(job.writer->unconfirmed().count()) / 1e6);
  job.state = record_of(job);
  job.waits_for = "its record, which cannot be written";
  job.runner.reset();
  job.writer->save([this, id, number = job.number] {
    mailbox_.post([this, id, number] {
      const Job* known = find(id, number);
      if (known == nullptr || known->runner != nullptr || is_over(known->state.phase)) return;
      start(id);
    });
  });
}

void JobService::Impl::on_finished(const std::string& id) {
  Job& job = jobs_.at(id);
  const std::uint64_t epoch = job.state.epoch;
  const bool cancel_wanted = job.state.cancel_wanted;
  job.state = job.runner->state();
  job.state.epoch = epoch;
  job.state.cancel_wanted = cancel_wanted;
  if (job.state.phase == rpc::JobPhase::Done && job.runner->has_rows()) keep_rows(job);
  // This call was posted, so the runner is not on the stack. From here on the record is made of job.state.
  job.runner.reset();
  over(id, job);
  start_queued();
}

void JobService::Impl::over(const std::string& id, Job& job) {
  job.state.finished_unix_us = clock_.wall_now().us;
  job.state.paused = false;
  metrics_.dead_letters.add(job.state.dead_letters.size());
  (job.state.phase == rpc::JobPhase::Done     ? metrics_.done
   : job.state.phase == rpc::JobPhase::Failed ? metrics_.failed
                                              : metrics_.cancelled)
      .add();
  if (!job.state.error) log::info("job", "{} ended: {}", id, job.state.error.to_string());
  for (auto& [number, waiter] : std::exchange(job.waiters, {})) waiter.respond(answer_to(waiter.request));
  finished_.push_back(id);
  if (job.writer->has_record()) {
    // A client that sees the job done reads its results, so they are stored before the record says so.
    if (job.has_rows && job.row_bytes <= options_.recorded_rows_bytes) {
      job.are_rows_on_the_way = true;
      job.writer->save_rows(job.rows, [this, id, number = job.number](const Status& status) {
        if (!status) log::warning("job", "{}: the results are only in memory: {}", id, status.to_string());
        Job* known = find(id, number);
        if (known == nullptr) return;
        known->are_rows_on_the_way = false;
        save(id);
      });
    } else {
      save(id);
    }
  }
  forget_oldest();
}

void JobService::Impl::forget_oldest() {
  if (finished_.size() <= options_.finished_kept) return;
  forget_rows(jobs_.at(finished_.front()));
  jobs_.erase(finished_.front());
  finished_.pop_front();
}

// --- Timers

void JobService::Impl::renew_later() {
  executor_->post_after(options_.renew_interval, [this] {
    for (auto& [id, job] : jobs_) {
      if (!job.writer->has_record() || is_over(job.state.phase)) continue;
      job.writer->save({});
      if (job.runner != nullptr && job.runner->puts_documents() && may_be_lost(job)) stand_down(id, job);
    }
    renew_later();
  });
}

void JobService::Impl::guard_later() {
  if (std::exchange(guarding_, true)) return;
  foreground_.end();
  executor_->post_after(seconds(1), [this] { guard(); });
}

/// Adjusts the share of their tasks that jobs may run to the foreground's 99th percentile latency of the last second.
void JobService::Impl::guard() {
  guarding_ = false;
  const std::optional<double> p99 = foreground_.end();
  const double target = static_cast<double>(p99_target_.value()) / 1e3;
  if (target <= 0) {
    yield_.reset();
  } else if (!yield_ || target != yield_target_s_) {
    tuner::YieldOptions options;
    options.target_s = yield_target_s_ = target;
    options.unit = 5;
    yield_.emplace(options, tuner::ControlMode::On);
  }
  if (yield_) (void)yield_->step(p99, true);
  const std::int64_t share = yield_ ? yield_->value() : 100;
  if (share != share_percent_) {
    share_percent_ = share;
    metrics_.share.set(static_cast<double>(share));
    for (auto& [id, job] : jobs_) {
      if (job.runner != nullptr) job.runner->share_changed();
    }
  }
  if (running() > 0) guard_later();
}

JobService::JobService(const JobServiceOptions& options, Runtime& runtime, rpc::Transport& transport,
                       rpc::SnapshotHolder& snapshot, const ApplicationRegistry& applications, JobRecords& records)
    : impl_(std::make_unique<Impl>(options, runtime, transport, snapshot, applications, records)) {}

JobService::~JobService() = default;

bool JobService::handle(rpc::Request& request, rpc::Responder& respond) {
  Impl* impl = impl_.get();
  if (auto* submit = std::get_if<rpc::SubmitJob>(&request)) {
    impl->post([impl, taken = std::move(*submit), answer = std::move(respond)]() mutable {
      impl->submit(taken, std::move(answer));
    });
  } else if (auto* list = std::get_if<rpc::ListJobs>(&request)) {
    impl->post([impl, taken = *list, answer = std::move(respond)]() mutable { impl->list(taken, std::move(answer)); });
  } else if (auto* cancel = std::get_if<rpc::CancelJob>(&request)) {
    rpc::ControlJob control;
    control.job_id = cancel->job_id;
    control.action = rpc::JobAction::Cancel;
    impl->post([impl, control, answer = std::make_shared<rpc::Responder>(std::move(respond))] {
      impl->control(control, [answer](Status status) { (*answer)(rpc::CancelJobReply{std::move(status)}); });
    });
  } else if (auto* control = std::get_if<rpc::ControlJob>(&request)) {
    impl->post([impl, taken = *control, answer = std::make_shared<rpc::Responder>(std::move(respond))] {
      impl->control(taken, [answer](Status status) { (*answer)(rpc::ControlJobReply{std::move(status)}); });
    });
  } else {
    return false;
  }
  return true;
}

}  // namespace fjord::mapreduce
