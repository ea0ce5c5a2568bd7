#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "current_pass.h"
#include "fjord/visitors/visitor_session.h"
#include "job_progress.h"
#include "job_throttle.h"
#include "phase.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// The tasks of a job: one visitor session at a time. It decides when tasks may begin (throttle, share left by the
/// foreground) and how many run on a storage node.
///
/// Threading: confined to the runner's executor. Lifetime: destroying it stops the tasks; the arguments of the
/// constructor outlive it.
class JobTasks {
 public:
  JobTasks(JobState& job, const JobSettings& settings, const RunnerEnvironment& environment,
           const RunnerCallbacks& callbacks, const CurrentPass& pass, PhaseHost& host, Random random)
      : job_(job),
        settings_(settings),
        environment_(environment),
        callbacks_(callbacks),
        pass_(pass),
        host_(host),
        random_(random) {}

  /// Returns the options of a session of these tasks.
  visitors::VisitorSessionOptions options(const char* library) const;
  /// Returns the options of a visit that returns documents to the runner.
  visitors::VisitorSessionOptions reading_options() const;

  struct Callbacks {
    /// A task has ended. An error fails the job.
    std::function<Status(BucketId, const TaskReport&)> on_task;
    std::function<void(std::uint64_t buckets)> on_known;  ///< The number of buckets is known. May be empty.
    /// All tasks have ended.
    std::function<void()> on_ended;
  };
  /// Starts tasks, which report with a TaskReport. Errors of the session and malformed reports fail the job.
  void run(visitors::VisitorSessionOptions options, Callbacks callbacks);
  /// Starts a visit whose documents `take` receives; an error that it returns fails the job.
  void read(visitors::VisitorSessionOptions options, std::function<Status(const std::string& docblock)> take,
            std::function<void()> on_ended);
  /// Starts a session. Its tasks wait for throttle and share.
  void start(visitors::VisitorSessionOptions options, visitors::VisitorSessionCallbacks callbacks);
  bool has_session() const { return session_ != nullptr; }
  visitors::SessionCursor cursor() const { return session_->cursor(); }
  /// Abandons the tasks; `settled` (may be empty) runs when they have stopped.
  void cancel(UniqueFunction<void()> settled = {}) { session_->cancel(std::move(settled)); }
  /// Ends without any message, because the executor is gone.
  void abandon();
  /// Forgets the session and the counts of the pass that has ended.
  void end_pass();

  void settings_changed();
  /// The share of its tasks that the job may run has changed. `runs`: tasks are running now.
  void share_changed(bool runs);
  /// Begins to measure a phase.
  void begin_phase();
  JobProgress& progress() { return progress_; }
  const JobProgress& progress() const { return progress_; }
  /// Counts a task that put `bytes` bytes in `documents` documents, or sent them to the runner (`is_sent`).
  void count(std::uint64_t bytes, std::uint64_t documents, bool is_sent = false);
  /// OK if the job is within its limits. Errors: those of check_limits().
  Status within_limits() const { return check_limits(job_, settings_, processor_us()); }

  /// Number of repeated tasks of the pass.
  std::uint64_t repeated() const;
  /// Number of documents that running map tasks have read so far.
  std::uint64_t documents_open() const;
  /// Processor time in microseconds, including that of running and of abandoned tasks.
  std::uint64_t processor_us() const;
  /// The remaining time of the map or reduce tasks.
  JobOutlook outlook() const;
  /// The resource or limit that running tasks wait for most.
  std::string bound_by() const;

 private:
  std::uint32_t visitors_per_node() const;
  std::uint32_t buckets_per_visitor() const;
  bool is_direct_map() const { return job_.phase == rpc::JobPhase::Map && job_.shuffle == rpc::Shuffle::Direct; }
  Duration wait_for_share(MonotonicTime now);
  Duration wait_before(std::size_t buckets);
  void note_repeated();

  JobState& job_;
  const JobSettings& settings_;
  const RunnerEnvironment& environment_;
  const RunnerCallbacks& callbacks_;
  const CurrentPass& pass_;
  PhaseHost& host_;
  Random random_;
  std::unique_ptr<visitors::VisitorSession> session_;
  JobProgress progress_;
  JobThrottle throttle_;
  std::uint64_t repeated_before_ = 0;      ///< Repeated tasks of the pass's earlier sessions.
  std::uint64_t repeated_noted_ = 0;       ///< Repeated buckets of the session that were noted as late writes.
  std::uint64_t processor_before_us_ = 0;  ///< Processor time used before the session began.
  std::uint64_t busy_before_us_ = 0;       ///< `job_.busy_us` when the phase began in this process.
  MonotonicTime phase_began_;
  MonotonicTime last_begin_;
  MonotonicTime waits_until_;
};

}  // namespace fjord::mapreduce
