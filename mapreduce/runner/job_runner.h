#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "direct_reduce.h"
#include "fjord/mapreduce/job_records.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/mapreduce/passes.h"
#include "fjord/visitors/visitor_session.h"
#include "job_progress.h"
#include "job_settings.h"
#include "job_throttle.h"
#include "task/sink_pump.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// The dependencies of a runner. Lifetime: all of them outlive the runner.
struct RunnerEnvironment {
  const JobServiceOptions& options;
  Clock& clock;
  rpc::Transport& transport;
  rpc::SnapshotHolder& snapshot;
  Executor& executor;
  BulkExecutor& bulk;
  std::uint64_t task_memory_bytes;
  std::uint64_t job_memory_bytes;
  const ApplicationRegistry& applications;
  /// Percentage of its tasks that the job may run; below 100 while foreground operations are slow.
  const std::int64_t& share_percent;
  JobRecords& records;
  visitors::Mailbox mailbox;  ///< Posts to `executor`.
  /// Runs a long task on a thread that runs nothing else meanwhile, so that `executor` stays free to answer calls.
  std::function<void(Task)> run_long;
};

struct RunnerCallbacks {
  /// The job is done, failed or cancelled. The callback may destroy the runner.
  std::function<void()> on_finished;
  /// Writes record() to the job's record and then calls `then`. If `then` is never called, the job has another owner.
  std::function<void(std::function<void()> then)> commit;
  /// True if no other process can own the job at this time.
  std::function<bool()> is_owner;
  /// Write and read the results beside the record, as JobRecordWriter does.
  std::function<void(JobRows rows, UniqueFunction<void(Status)> done)> save_rows;
  std::function<void(UniqueFunction<void(Result<JobRows>)> done)> load_rows;
};

/// Runs one job through its passes, and each pass through its phases: map, reduce and, if its rows become lasting
/// documents, put. Clean-up follows the last pass. With the direct shuffle the runner itself reduces while map tasks
/// end, and nothing is put. If that needs more memory than the job may use and the shuffle was not set by the user, the
/// job restarts through the store. It also restarts, with new names for tuple documents, when the distribution bits
/// change and a phase cannot be finished because of that.
///
/// Threading: confined to the environment's executor. Lifetime: destroying it stops the job without cleaning up.
class JobRunner {
 public:
  /// `job` is a new job with id and spec, or the record of a job that the runner continues.
  JobRunner(JobState job, RunnerEnvironment environment, Random random, RunnerCallbacks callbacks);
  ~JobRunner() { reduction_.request_stop(); }
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

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
  /// The state of the job. Its phase is Done, Failed or Cancelled once on_finished was called.
  JobState state() const;
  JobOutlook outlook() const;
  /// The state of the job with the cursor from which another process can continue.
  JobState record() const;
  rpc::JobPhase phase() const { return job_.phase; }
  bool is_paused() const { return job_.paused; }
  /// True while the job may put or remove lasting documents.
  bool puts_documents() const;
  /// True if the job is done and its rows are in this runner. take_rows() may be called once.
  bool has_rows() const { return has_rows_; }
  JobRows take_rows() { return std::move(rows_); }

 private:
  std::uint32_t visitors_per_node() const;
  std::uint32_t buckets_per_visitor() const;
  visitors::VisitorSessionOptions session_options(const char* library) const;
  void run(visitors::VisitorSessionOptions options, std::function<void(const TaskReport&)> on_task,
           std::function<void(std::uint64_t)> on_known, std::function<void(Status)> on_finished);
  bool choose_pass();
  void choose_shuffle();
  void begin();
  bool go_on();
  void start_session(visitors::VisitorSessionOptions options, visitors::VisitorSessionCallbacks callbacks);
  visitors::VisitorSessionOptions map_options() const;
  Duration wait_for_share(MonotonicTime now);
  Duration wait_before(std::size_t buckets);
  void choose_output();
  void place_output();
  void set_output();
  void in_phase(std::function<void()> phase);
  void commit(std::function<void()> then);
  std::function<void()> if_alive(std::function<void()> then);
  void map_direct(std::optional<std::vector<BucketId>> buckets);
  void run_direct(std::optional<std::vector<BucketId>> buckets);
  void on_direct(const Status& status);
  void finish_direct();
  void reduce_elsewhere();
  void on_direct_reduced(Result<Rows> rows);
  void switch_to_store();
  void map();
  void on_mapped(const TaskReport& report);
  void reduce();
  void run_reduce();
  void reduce_nothing();
  void finish_store(rpc::JobPhase outcome);
  void clean_up();
  void reset_counts();
  std::uint64_t memory_limit() const;
  const char* memory_limit_name() const;
  ErrorDetails memory_limit_details() const;
  void end_mapping();
  void take_dead_letters(const TaskReport& report);
  Status check_limits() const;
  std::uint64_t processor_us() const;
  void fail(const Status& status);
  bool may_begin_anew(const Status& status) const;
  void stop();
  void stopped();
  void begin_anew();
  void end();
  std::string bound_by() const;

  // Passes, and rows that become documents (job_runner_passes.cpp).
  bool puts_rows() const;
  bool takes_some() const;
  std::vector<BucketId> output_buckets() const;
  std::string input_selection() const;
  Status check_input() const;
  void set_outputs();
  visitors::VisitorSessionOptions reading_options() const;
  void reduced();
  void collect(std::function<void()> then);
  void on_collected(std::function<void()> then);
  void write_pages();
  void pump(std::function<Result<bool>(SinkOperation&)> next, unsigned tries, std::function<void()> then);
  void pages_written();
  void put();
  void run_put();
  void settle();
  void take_rows_of(const std::string& docblock);
  void read_targets();
  void take_targets(const std::string& docblock);
  void remove_stale();
  void read_kept_rows();
  void note_late_writes();
  void note_repeated();
  void finish_pass();
  void next_pass();

  JobState job_;
  RunnerEnvironment environment_;
  Random random_;
  RunnerCallbacks callbacks_;
  JobSettings settings_;
  TaskSpec spec_;
  /// Snapshot at the start of the pass; owns the types that the application uses.
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot_;
  PassPlan plan_;
  Application* application_ = nullptr;  ///< The application of `plan_`.
  std::unique_ptr<DirectReduce> direct_;
  std::stop_source reduction_;  ///< Stops the reduction that runs on another thread.
  JobRows rows_;
  bool has_rows_ = false;
  std::unique_ptr<visitors::VisitorSession> session_;
  std::function<void()> phase_;                 ///< Begins or resumes the current phase.
  std::optional<visitors::VisitToken> resume_;  ///< Cursor of a map phase to resume.
  std::vector<BucketId> lost_;                  ///< Direct: buckets that must be read again.
  std::uint64_t repeated_before_ = 0;           ///< Repeated tasks of the pass's earlier sessions.
  std::uint64_t reduced_documents_ = 0;
  rpc::JobPhase outcome_ = rpc::JobPhase::Done;
  bool begins_anew_ = false;  ///< The job restarts as soon as its tasks have stopped.
  bool between_ = false;      ///< No phase runs: one has ended and the next has not begun.
  bool maps_ = false;         ///< The session runs a map phase through the store.
  JobProgress progress_;
  JobThrottle throttle_;
  std::uint64_t busy_before_us_ = 0;  ///< `job_.busy_us` when the phase began in this process.
  struct {
    std::uint64_t busy_us = 0;
    std::uint64_t processor_us = 0;
  } before_direct_;  ///< Times of the job when `direct_` began to count.
  MonotonicTime phase_began_;
  MonotonicTime last_begin_;
  MonotonicTime waits_until_;
  std::uint64_t repeated_noted_ = 0;       ///< Repeated buckets of the session that were noted.
  std::uint64_t processor_before_us_ = 0;  ///< Processor time used before the session began.
  /// Until this time puts of abandoned tasks may be in flight.
  std::optional<MonotonicTime> late_writes_until_;

  // The put phase.
  struct Settling {
    std::uint64_t round = 0;  ///< Current round; each handles a share of all ids.
    std::uint64_t rounds = 1;
    std::uint64_t rows = 0;
    std::set<std::string> pages;   ///< Ids of pages that have been read.
    std::vector<GlobalId> wanted;  ///< Ids of documents that must exist, rising.
    std::vector<bool> found;
    std::vector<std::string> stale;
    std::size_t stale_bytes = 0;
    bool again = false;  ///< More obsolete documents exist than `stale` holds.
  };
  Settling settling_;
  std::set<std::string> collected_;  ///< Ids of pages that collect() has read.
  std::shared_ptr<SinkPump> pump_;
  bool pumps_ = false;  ///< `pump_` puts or removes documents; the end of the phase waits for it.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fjord::mapreduce
