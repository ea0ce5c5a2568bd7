#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "current_pass.h"
#include "current_step.h"
#include "job_report.h"
#include "job_steps.h"
#include "job_tasks.h"
#include "late_writes.h"
#include "output_placement.h"
#include "phase.h"
#include "row_pump.h"

namespace fjord::mapreduce {

/// Runs one job through its passes, and each pass through its steps (job_steps.h). A step that runs tasks or works in
/// this process is a Phase. If a direct job needs more memory than it may use and the shuffle was not set by the user,
/// the job restarts through the store. A pass also restarts, with new names for tuple documents, in two cases: the
/// distribution bits change so that a phase cannot be finished, or full nodes refuse its documents and these can be put
/// elsewhere (OutputPlacement).
///
/// Threading: confined to the environment's executor. Lifetime: destroying it stops the job without cleaning up.
class JobRunner final : private PhaseHost {
 public:
  /// `job` is a new job with id and spec, or the record of a job that the runner continues.
  JobRunner(JobState job, RunnerEnvironment environment, Random random, RunnerCallbacks callbacks);

  void start();
  /// Ends the job as Cancelled, after the tuple documents are removed.
  void cancel();
  /// Abandons the running tasks. resume() continues with the buckets that are not done.
  void pause();
  void resume();
  /// Applies settings at once.
  void apply(std::vector<rpc::Parameter> settings);
  /// Must be called when the environment's share_percent has changed.
  void share_changed();
  /// Called when the executor is gone: the runner does nothing from then on, not even in its destructor.
  void abandon();
  /// What the job says of itself. Its phase is Done, Failed or Cancelled once on_finished was called.
  const JobReport& report() const { return report_; }
  rpc::JobPhase phase() const { return job_.phase; }
  bool is_paused() const { return job_.paused; }
  /// True while the job may put or remove lasting documents.
  bool puts_documents() const override;
  /// True if the job is done and its rows are in this runner. take_rows() may be called once.
  bool has_rows() const { return rows_.are_there; }
  JobRows take_rows() { return std::move(rows_.rows); }

 private:
  // Calls of the phase that runs (PhaseHost).
  void ended() override;
  void failed(const Status& status) override;
  void too_large(const Status& status) override;
  void continue_later() override;
  void pump_stopped() override { stop(); }
  bool goes_on() const override { return outcome_ == rpc::JobPhase::Done && !again_; }
  void note_late_writes() override;

  void begin_pass();
  void restart();
  bool continue_job();
  void enter(Step step);
  void place_output();
  void record_and_begin();
  void begin_step();
  void begin_phase(bool is_taken_over);
  void run_phase();
  PassShape shape() const;
  void stop();
  void stopped();
  void reset_counts();
  void finish_pass();
  void next_pass();
  void keep_rows();

  JobState job_;
  const RunnerEnvironment environment_;
  const RunnerCallbacks callbacks_;
  JobSettings settings_;
  CurrentPass pass_;
  JobTasks tasks_;
  RowPump pump_;
  OutputPlacement placement_;
  RowsHere rows_;
  std::unique_ptr<DirectReduce> groups_;
  CurrentStep step_;
  LateWrites late_writes_;
  JobReport report_;
  rpc::JobPhase outcome_ = rpc::JobPhase::Done;
  /// How the pass starts again (Restart or Move), as soon as its tasks have stopped.
  std::optional<StepEvent> again_;
};

}  // namespace fjord::mapreduce
