#include "job_runner.h"

#include <algorithm>
#include <fmt/core.h>
#include <utility>

#include "clean_up_phase.h"
#include "direct_phases.h"
#include "fjord/common/check.h"
#include "fjord/common/log.h"
#include "map_phase.h"
#include "put_phases.h"
#include "reduce_phase.h"

namespace fjord::mapreduce {
namespace {

constexpr unsigned kRestartsMax = 5;

Status cancelled() { return Status(StatusCode::Cancelled, "the job was cancelled"); }

}  // namespace

JobRunner::JobRunner(JobState job, RunnerEnvironment environment, Random random, RunnerCallbacks callbacks)
    : job_(std::move(job)),
      environment_(std::move(environment)),
      callbacks_(std::move(callbacks)),
      pass_(job_, settings_, environment_),
      tasks_(job_, settings_, environment_, callbacks_, pass_, *this, random),
      pump_(environment_, callbacks_, *this) {
  apply(job_.settings.empty() ? job_.spec.settings : job_.settings);
}

// --- From outside

JobState JobRunner::state() const {
  JobState state = job_;
  state.counts.tasks_repeated = tasks_.repeated();
  state.processor_us = tasks_.processor_us();
  return state;
}

JobOutlook JobRunner::outlook() const {
  JobOutlook outlook;
  const bool reduces = job_.phase == rpc::JobPhase::Reduce;
  if (reduces || job_.phase == rpc::JobPhase::Map) {
    const PassCounts& counts = job_.counts;
    const auto left =
        tasks_.progress().left(reduces ? counts.reduce_tasks_done : counts.map_tasks_done,
                               reduces ? counts.reduce_tasks : counts.map_tasks, environment_.clock.now());
    outlook.left = left.time;
    outlook.left_error = left.error;
  }
  if (reduces || job_.phase == rpc::JobPhase::Map || job_.phase == rpc::JobPhase::Put) outlook.bound_by = bound_by();
  return outlook;
}

JobState JobRunner::record() const {
  JobState record = state();
  if (phase_ != nullptr && step_ == Step::Map) record.resume = phase_->cursor();
  return record;
}

void JobRunner::cancel() {
  if (outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  outcome_ = rpc::JobPhase::Cancelled;
  job_.error = cancelled();
  if (restarts_) return;  // The job is already being stopped.
  stop();
}

void JobRunner::pause() {
  if (job_.paused || outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  if (puts_documents()) note_late_writes();
  job_.paused = true;
  tasks_.progress().pause(environment_.clock.now());
  if (activity_ != Activity::Running || !phase_->is_pausable()) return;
  activity_ = Activity::Paused;
  phase_->stop();
  tasks_.cancel();
}

void JobRunner::resume() {
  if (!job_.paused) return;
  job_.paused = false;
  tasks_.progress().resume(environment_.clock.now());
  if (activity_ != Activity::Paused || outcome_ != rpc::JobPhase::Done) return;
  if (job_.phase == rpc::JobPhase::Map && environment_.snapshot.get()->distribution_bits() != job_.bits) {
    restart();
  } else {
    run_phase();
  }
}

void JobRunner::apply(std::vector<rpc::Parameter> settings) {
  job_.settings = std::move(settings);
  if (const auto parsed = JobSettings::parse(job_.settings)) settings_ = *parsed;
  tasks_.settings_changed();
  share_changed();
}

void JobRunner::share_changed() { tasks_.share_changed(activity_ == Activity::Running && step_ != Step::CleanUp); }

void JobRunner::abandon() {
  if (phase_ != nullptr && step_ == Step::DirectReduce) phase_->stop();
  tasks_.abandon();
}

bool JobRunner::puts_documents() const {
  return pass_.puts_documents() && (job_.phase == rpc::JobPhase::Reduce || job_.phase == rpc::JobPhase::Put);
}

std::string JobRunner::bound_by() const {
  const MonotonicTime now = environment_.clock.now();
  if (job_.paused) return "paused";
  if (activity_ == Activity::Running) return tasks_.bound_by();
  if (late_writes_until_ > now) {
    return fmt::format("writes of tasks that were given up ({} s at most)",
                       std::chrono::ceil<std::chrono::seconds>(*late_writes_until_ - now).count());
  }
  return "its record";
}

// --- Steps

void JobRunner::start() {
  const bool has_begun = job_.bits != 0;
  if (const Status planned = pass_.plan(); !planned) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = planned;
    return stopped();
  }
  // The former owner may have done more than the record says.
  if (has_begun && job_.phase != rpc::JobPhase::CleanUp) note_late_writes();
  if (job_.cancel_wanted) {
    outcome_ = rpc::JobPhase::Cancelled;
    job_.error = cancelled();
    stopped();
  } else if (!has_begun) {
    begin_pass();
  } else if (!continue_job()) {
    restart();
  }
}

void JobRunner::begin_pass() {
  job_.bits = environment_.snapshot.get()->distribution_bits();
  // The cursor of an earlier run or pass, if the job was taken over in it.
  job_.resume.clear();
  tasks_.progress().begin(0, environment_.clock.now());
  enter(first_step(shape()));
}

/// Continues as the record says. Returns false if that is impossible.
bool JobRunner::continue_job() {
  const std::optional<Step> step = continued_step(job_, environment_.snapshot.get()->distribution_bits());
  const auto& sabotage = environment_.options.sabotage;
  if (step && sabotage.lose_dead_letters) job_.dead_letters.clear();
  if (step && sabotage.count_again_after_takeover && step == Step::Map) job_.resume.clear();
  if (!step) return false;
  if (step == Step::Map && !job_.resume.empty() && !visitors::VisitToken::parse(job_.resume)) return false;
  if (step == Step::CleanUp) outcome_ = job_.outcome;
  step_ = *step;
  job_.phase = phase_of(step_, job_.phase);
  tasks_.progress().begin(job_.counts.map_tasks_done, environment_.clock.now());
  phase_ = make_phase(step_, true);
  run_phase();
  return true;
}

/// Enters a step, if need be after the record says so.
void JobRunner::enter(Step step) {
  current_ = std::make_shared<int>(0);
  activity_ = Activity::Between;
  phase_.reset();
  step_ = step;
  job_.phase = phase_of(step, job_.phase);
  if (step == Step::CleanUp) {
    job_.outcome = outcome_;
    job_.paused = false;
  }
  // A new owner must use the same names of tuple documents and pages, and remove them.
  const bool begins_output = step == Step::Map || (step == Step::Pages && job_.shuffle == rpc::Shuffle::Direct);
  if (begins_output) pass_.place_output();
  if (is_recorded_first(step)) {
    commit([this] { begin_step(); });
  } else {
    begin_step();
  }
}

void JobRunner::begin_step() {
  switch (step_) {
    case Step::PassDone:
      return finish_pass();
    case Step::KeepRows:
      return keep_rows();
    case Step::Over:
      return end();
    default:
      phase_ = make_phase(step_, false);
      run_phase();
  }
}

/// Starts the phase, or its next part, unless the job is paused.
void JobRunner::run_phase() {
  activity_ = job_.paused ? Activity::Paused : Activity::Running;
  tasks_.begin_phase();
  if (activity_ == Activity::Running) phase_->start();
}

std::unique_ptr<Phase> JobRunner::make_phase(Step step, bool is_taken_over) {
  JobParts parts{job_, settings_, environment_, callbacks_, pass_, tasks_, pump_, rows_, groups_, *this};
  switch (step) {
    case Step::Map: {
      std::optional<visitors::VisitToken> resume;
      if (!job_.resume.empty()) resume = std::move(*visitors::VisitToken::parse(job_.resume));
      return std::make_unique<MapPhase>(std::move(parts), std::move(resume));
    }
    case Step::DirectMap:
      return std::make_unique<DirectMapPhase>(std::move(parts));
    case Step::DirectReduce:
      return std::make_unique<DirectReducePhase>(std::move(parts));
    case Step::Reduce:
      return std::make_unique<ReducePhase>(std::move(parts));
    case Step::Pages:
      return std::make_unique<PagesPhase>(std::move(parts));
    case Step::Put:
      return std::make_unique<PutPhase>(std::move(parts));
    case Step::CleanUp: {
      const bool has_kept_rows = outcome_ == rpc::JobPhase::Done && job_.shuffle == rpc::Shuffle::Direct;
      return std::make_unique<CleanUpPhase>(std::move(parts), is_taken_over && has_kept_rows);
    }
    case Step::PassDone:
    case Step::KeepRows:
    case Step::Over:
      break;
  }
  FJORD_CHECK(false);
  return nullptr;
}

PassShape JobRunner::shape() const {
  PassShape shape = pass_.shape();
  shape.keeps_rows = step_ == Step::PassDone && rows_.are_there && shape.is_direct &&
                     rows_.bytes() <= environment_.options.recorded_rows_bytes;
  return shape;
}

void JobRunner::commit(std::function<void()> then) { callbacks_.commit(if_current(std::move(then))); }

std::function<void()> JobRunner::if_current(std::function<void()> then) const {
  return [current = std::weak_ptr<int>(current_), then = std::move(then)] {
    if (!current.expired()) then();
  };
}

// --- From phases. Each defers what follows: a session may be on the stack and is about to be replaced.

void JobRunner::ended() {
  activity_ = Activity::Between;
  environment_.executor.post(if_current([this] { enter(next_step(step_, StepEvent::Done, shape())); }));
}

void JobRunner::continue_later() {
  activity_ = Activity::Between;
  environment_.executor.post(if_current([this] { run_phase(); }));
}

/// A restart may help if the distribution bits have changed. Tasks are named after buckets, which more bits split: a
/// bucket that had not been read by then no longer exists as a whole.
void JobRunner::failed(const Status& status) {
  if (!goes_on() || job_.phase == rpc::JobPhase::CleanUp) return;
  restarts_ = is_transient(status.code()) && environment_.snapshot.get()->distribution_bits() != job_.bits &&
              job_.run - job_.pass_run < kRestartsMax;
  if (!restarts_) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = status;
  }
  stop();
}

void JobRunner::too_large(const Status& status) {
  if (job_.spec.shuffle != rpc::Shuffle::Auto) return failed(status);
  log::info("job", "{}: {} groups and more are too many for one process; it goes on through the store", job_.job_id,
            job_.counts.map_tasks_done);
  current_ = std::make_shared<int>(0);
  activity_ = Activity::Between;
  tasks_.cancel(if_current([this] {
    reset_counts();
    job_.shuffle = rpc::Shuffle::Store;
    begin_pass();
  }));
}

void JobRunner::note_late_writes() {
  if (pass_.puts_documents()) {
    late_writes_until_ = environment_.clock.now() + environment_.options.late_writes_max;
  }
}

// --- Ends

void JobRunner::stop() {
  if (puts_documents()) note_late_writes();
  const bool runs = activity_ == Activity::Running;
  activity_ = Activity::Between;
  current_ = std::make_shared<int>(0);
  if (phase_ != nullptr && runs) phase_->stop();
  if (pump_.is_running()) return;  // pump_stopped() follows
  if (tasks_.has_session()) {
    tasks_.cancel(if_current([this] { stopped(); }));
  } else {
    environment_.executor.post(if_current([this] { stopped(); }));
  }
}

void JobRunner::stopped() {
  job_.paused = job_.paused && restarts_;
  if (restarts_ && outcome_ == rpc::JobPhase::Done) {
    restart();
  } else {
    enter(next_step(step_, StepEvent::Abort, shape()));
  }
}

/// Restarts the pass. Clean-up removes the documents of earlier runs with the others.
void JobRunner::restart() {
  log::info("job", "{} begins anew", job_.job_id);
  restarts_ = false;
  ++job_.run;
  reset_counts();
  begin_pass();
}

void JobRunner::reset_counts() {
  phase_.reset();
  groups_.reset();
  rows_.clear();
  job_.phase = rpc::JobPhase::Map;
  const std::uint64_t repeated = job_.counts.tasks_repeated;
  job_.counts = {};
  job_.counts.tasks_repeated = repeated;
  job_.dead_letters.resize(std::min<std::size_t>(job_.dead_letters.size(), job_.dead_letters_before()));
}

/// Ends the pass, but first waits for late writes. They put rows of this job; once the job has ended, another job may
/// put newer rows under the same ids.
void JobRunner::finish_pass() {
  const MonotonicTime now = environment_.clock.now();
  const bool waits = late_writes_until_ > now;
  if (waits) {
    environment_.executor.post_after(*late_writes_until_ - now, if_current([this] { finish_pass(); }));
  } else if (pass_.is_last()) {
    enter(next_step(step_, StepEvent::Done, shape()));
  } else {
    next_pass();
  }
}

/// Records the pass as done and begins the next one. Each pass has its own run, so that their documents never mix.
void JobRunner::next_pass() {
  PassResult done{state().counts, job_.dead_letters.size() - job_.dead_letters_before(), job_.shuffle};
  job_.passes_done.push_back(std::move(done));
  reset_counts();
  ++job_.run;
  job_.pass_run = job_.run;
  job_.bits = 0;
  job_.shuffle = rpc::Shuffle::Auto;
  commit([this] {
    tasks_.end_pass();
    if (const Status planned = pass_.plan(); planned) {
      begin_pass();
    } else {
      failed(planned);
    }
  });
}

/// Stores the results beside the record: clean-up removes the pages, and a new owner then finds the rows there.
void JobRunner::keep_rows() {
  callbacks_.save_rows(rows_.rows, [this, current = std::weak_ptr<int>(current_)](const Status& status) {
    if (current.expired()) return;
    if (!status) log::warning("job", "{}: the results are only in memory: {}", job_.job_id, status.to_string());
    enter(next_step(step_, StepEvent::Done, shape()));
  });
}

void JobRunner::end() {
  job_.counts.tasks_repeated = tasks_.repeated();
  job_.processor_us = tasks_.processor_us();
  job_.phase = outcome_;
  job_.paused = false;
  callbacks_.on_finished();
}

}  // namespace fjord::mapreduce
