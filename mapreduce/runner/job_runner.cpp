#include "job_runner.h"

#include <utility>

#include "fjord/common/log.h"
#include "phases.h"

namespace fjord::mapreduce {
namespace {

Status cancelled() { return Status(StatusCode::Cancelled, "the job was cancelled"); }

}  // namespace

JobRunner::JobRunner(JobState job, RunnerEnvironment environment, Random random, RunnerCallbacks callbacks)
    : job_(std::move(job)),
      environment_(std::move(environment)),
      callbacks_(std::move(callbacks)),
      pass_(job_, settings_, environment_),
      tasks_(job_, settings_, environment_, callbacks_, pass_, *this, random),
      pump_(environment_, callbacks_, *this),
      placement_(job_, environment_, pass_),
      report_(job_, tasks_, step_, late_writes_, environment_.clock) {
  apply(job_.settings.empty() ? job_.spec.settings : job_.settings);
}

// --- From outside

void JobRunner::cancel() {
  if (outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  outcome_ = rpc::JobPhase::Cancelled;
  job_.error = cancelled();
  if (again_) return;  // The job is already being stopped.
  stop();
}

void JobRunner::pause() {
  if (job_.paused || outcome_ != rpc::JobPhase::Done || job_.phase == rpc::JobPhase::CleanUp) return;
  if (puts_documents()) note_late_writes();
  job_.paused = true;
  tasks_.progress().pause(environment_.clock.now());
  if (step_.pause()) tasks_.cancel();
}

void JobRunner::resume() {
  if (!job_.paused) return;
  job_.paused = false;
  tasks_.progress().resume(environment_.clock.now());
  if (!step_.is_paused() || outcome_ != rpc::JobPhase::Done) return;
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

void JobRunner::share_changed() { tasks_.share_changed(step_.is_running() && step_.step() != Step::CleanUp); }

void JobRunner::abandon() {
  step_.abandon();
  tasks_.abandon();
}

bool JobRunner::puts_documents() const {
  return pass_.puts_documents() && (job_.phase == rpc::JobPhase::Reduce || job_.phase == rpc::JobPhase::Put);
}

// --- Steps

void JobRunner::start() {
  const bool has_begun = job_.bits != 0;
  if (const Status planned = pass_.plan(); !planned) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = planned;
    return stopped();
  }
  // The former owner may have begun writes that the record does not mention, and they may still arrive.
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
  // A cursor that is left here is of an earlier run or pass, in which this process took the job over.
  job_.resume.clear();
  tasks_.progress().begin(0, environment_.clock.now());
  enter(first_step(shape()));
}

/// Continues as the record says. Returns false if that is impossible.
bool JobRunner::continue_job() {
  const std::optional<Step> step = continued_step(job_, environment_.snapshot.get()->distribution_bits());
  if (!step) return false;
  if (step == Step::Map && !job_.resume.empty() && !visitors::SessionCursor::parse(job_.resume)) return false;
  if (step == Step::CleanUp) outcome_ = job_.outcome;
  step_.enter(*step);
  job_.phase = phase_of(*step, job_.phase);
  tasks_.progress().begin(job_.counts.map_tasks_done, environment_.clock.now());
  begin_phase(true);
  return true;
}

void JobRunner::enter(Step step) {
  step_.enter(step);
  job_.phase = phase_of(step, job_.phase);
  if (step == Step::CleanUp) {
    job_.outcome = outcome_;
    job_.paused = false;
  }
  const bool begins_output = step == Step::Map || (step == Step::Pages && job_.shuffle == rpc::Shuffle::Direct);
  begins_output ? place_output() : record_and_begin();
}

/// Chooses the output buckets unless the job has some. They are recorded before anything is put there: a new owner must
/// use the same names of tuple documents and pages, and remove them.
void JobRunner::place_output() {
  placement_.prepare(step_.if_current([this](const Status& placed) {
    if (!placed) return failed(placed);
    record_and_begin();
  }));
}

/// Begins the step. If is_recorded_first(), the record of the job is written before.
void JobRunner::record_and_begin() {
  if (is_recorded_first(step_.step())) {
    callbacks_.commit(step_.if_current([this] { begin_step(); }));
  } else {
    begin_step();
  }
}

void JobRunner::begin_step() {
  switch (step_.step()) {
    case Step::PassDone:
      return finish_pass();
    case Step::KeepRows:
      return keep_rows();
    case Step::Over:
      job_ = report_.state();
      job_.phase = outcome_;
      job_.paused = false;
      return callbacks_.on_finished();
    default:
      begin_phase(false);
  }
}

void JobRunner::begin_phase(bool is_taken_over) {
  JobParts parts{job_, settings_, environment_, callbacks_, pass_, tasks_, pump_, rows_, groups_, *this};
  step_.set_phase(mapreduce::make_phase(step_.step(), std::move(parts), is_taken_over, outcome_));
  run_phase();
}

void JobRunner::run_phase() {
  tasks_.begin_phase();
  step_.run(job_.paused);
}

PassShape JobRunner::shape() const {
  PassShape shape = pass_.shape();
  shape.keeps_rows = step_.step() == Step::PassDone && rows_.are_there && shape.is_direct &&
                     rows_.bytes() <= environment_.options.recorded_rows_bytes;
  return shape;
}

// --- From phases. Each defers what follows: a session may be on the stack and is about to be replaced.

void JobRunner::ended() {
  step_.rest();
  environment_.executor.post(step_.if_current([this] {
    if (step_.step() == Step::MoveOutput) {
      placement_.leave();
      restart();
    } else {
      enter(next_step(step_.step(), StepEvent::Done, shape()));
    }
  }));
}

void JobRunner::continue_later() {
  step_.rest();
  environment_.executor.post(step_.if_current([this] { run_phase(); }));
}

void JobRunner::failed(const Status& status) {
  if (!goes_on() || job_.phase == rpc::JobPhase::CleanUp) return;
  if (status.code() == StatusCode::NoSpace) {
    again_ = placement_.recover(status, step_.step());
  } else if (pass_.may_restart(status)) {
    again_ = StepEvent::Restart;
  }
  if (!again_) {
    outcome_ = rpc::JobPhase::Failed;
    job_.error = status.code() == StatusCode::NoSpace ? with_advice(status) : status;
  }
  stop();
}

void JobRunner::too_large(const Status& status) {
  if (const Status may_use_store = placement_.check_too_large(status); !may_use_store) return failed(may_use_store);
  log::info("job", "{}: {} groups and more are too many for one process; it goes on through the store", job_.job_id,
            job_.counts.map_tasks_done);
  step_.interrupt();
  tasks_.cancel(step_.if_current([this] {
    reset_counts();
    job_.shuffle = rpc::Shuffle::Store;
    begin_pass();
  }));
}

void JobRunner::note_late_writes() {
  if (pass_.puts_documents()) late_writes_.note(environment_.clock.now(), environment_.options.late_writes_max);
}

// --- Ends

void JobRunner::stop() {
  if (puts_documents()) note_late_writes();
  step_.stop();
  if (pump_.is_running()) return;  // the pump stops and then calls pump_stopped()
  if (tasks_.has_session()) {
    tasks_.cancel(step_.if_current([this] { stopped(); }));
  } else {
    environment_.executor.post(step_.if_current([this] { stopped(); }));
  }
}

void JobRunner::stopped() {
  job_.paused = job_.paused && again_;
  const StepEvent event =
      outcome_ == rpc::JobPhase::Done && again_ ? *std::exchange(again_, std::nullopt) : StepEvent::Abort;
  if (event == StepEvent::Restart) {
    restart();
  } else {
    enter(next_step(step_.step(), event, shape()));
  }
}

/// Restarts the pass. Clean-up removes the documents of earlier runs with the others.
void JobRunner::restart() {
  log::info("job", "{} begins again", job_.job_id);
  ++job_.run;
  reset_counts();
  begin_pass();
}

void JobRunner::reset_counts() {
  step_.drop_phase();
  groups_.reset();
  rows_.clear();
  pass_.reset_counts();
}

/// Ends the pass, but first waits for late writes.
void JobRunner::finish_pass() {
  if (const Duration late = late_writes_.left(environment_.clock.now()); late > Duration(0)) {
    environment_.executor.post_after(late, step_.if_current([this] { finish_pass(); }));
  } else if (pass_.is_last()) {
    enter(next_step(Step::PassDone, StepEvent::Done, shape()));
  } else {
    next_pass();
  }
}

void JobRunner::next_pass() {
  pass_.end(report_.state().counts);
  reset_counts();
  callbacks_.commit(step_.if_current([this] {
    tasks_.end_pass();
    const Status planned = pass_.plan();
    planned ? begin_pass() : failed(planned);
  }));
}

/// Stores the results beside the record: clean-up removes the pages, and a new owner then finds the rows there.
void JobRunner::keep_rows() {
  callbacks_.save_rows(rows_.rows, step_.if_current([this](const Status& status) {
    if (!status) log::warning("job", "{}: the results are only in memory: {}", job_.job_id, status.to_string());
    enter(next_step(step_.step(), StepEvent::Done, shape()));
  }));
}

}  // namespace fjord::mapreduce
