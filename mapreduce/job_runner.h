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
#include "sink_pump.h"
#include "task.h"

namespace fjord::mapreduce {

/// What a runner works with. Lifetime: all of it outlives the runner.
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
  const std::int64_t& share_percent;  ///< Of the tasks that it could run; less while the foreground is slow.
  JobRecords& records;
  visitors::Mailbox mailbox;  ///< Of the executor.
  /// Runs a task that may take long on a thread that runs nothing else meanwhile, so that `executor` can always answer.
  std::function<void(Task)> run_long;
};

struct RunnerCallbacks {
  /// Done, failed or cancelled; may destroy the runner.
  std::function<void()> on_finished;
  /// The job's record has to say what status() does before `then` may be called. What is not called any more: the job
  /// has another owner.
  std::function<void(std::function<void()> then)> commit;
  /// Nobody else can own the job by now.
  std::function<bool()> is_owner;
  /// Results beside the record, as JobKeeper writes and reads them.
  std::function<void(JobRows rows, UniqueFunction<void(Status)> done)> save_rows;
  std::function<void(UniqueFunction<void(Result<JobRows>)> done)> load_rows;
};

/// Takes one job through its passes, and each pass through its phases: map, reduce, and, if its rows become documents
/// that stay, put. At the end of the last pass comes clean-up. With the direct shuffle the runner itself reduces, as
/// map tasks end, and nothing is put; if that needs more memory than the job may take and the shuffle is the system's
/// choice, the job begins anew through the store. It also begins anew when the distribution bits change and a phase
/// cannot be finished because of that, with tuple documents of another name.
///
/// Threading: confined to the environment's executor. Lifetime: destroying it stops the job without cleaning up.
class JobRunner {
 public:
  /// `job` has id and spec, or is the job's record: then it goes on from there.
  JobRunner(rpc::JobStatus job, RunnerEnvironment environment, Random random, RunnerCallbacks callbacks);
  ~JobRunner() { reduction_.request_stop(); }
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  void start();
  /// Ends the job as Cancelled; the documents between map and reduce are removed first.
  void cancel();
  /// Tasks that are under way are given up; resume() goes on with the buckets that are not done.
  void pause();
  void resume();
  /// In force at once.
  void apply(std::vector<rpc::Parameter> settings);
  /// The environment's share_percent has changed.
  void share_changed();
  /// The executor is gone: does nothing any more, not even when destroyed.
  void abandon();
  /// The phase is Done, Failed or Cancelled once on_finished was called.
  rpc::JobStatus status() const;
  /// The same as a record, from which another process can go on.
  rpc::JobStatus record() const;
  bool is_paused() const { return job_.paused; }
  /// Documents that stay are being put or removed, or may be.
  bool puts_documents() const;
  /// Of a job that is done and was reduced here; take_rows() once.
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

  // What makes one pass of several, and documents of rows (job_runner_passes.cpp).
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
  void note_strays();
  void note_repeated();
  void finish_pass();
  void next_pass();
  std::uint64_t in_passes_done(std::uint64_t rpc::PassStatus::*number) const;

  rpc::JobStatus job_;
  RunnerEnvironment environment_;
  Random random_;
  RunnerCallbacks callbacks_;
  JobSettings settings_;
  TaskSpec spec_;
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot_;  ///< Of the start: holds the types of the application.
  PassPlan plan_;
  Application* application_ = nullptr;  ///< That of the plan.
  std::unique_ptr<DirectReduce> direct_;
  std::stop_source reduction_;  ///< Of the groups of `direct_`, elsewhere.
  JobRows rows_;
  bool has_rows_ = false;
  std::unique_ptr<visitors::VisitorSession> session_;
  std::function<void()> phase_;                 ///< Begins the present phase, or goes on with it.
  std::optional<visitors::VisitToken> resume_;  ///< Of a map phase that was begun before.
  std::vector<BucketId> lost_;                  ///< Direct: buckets that are to be read once more.
  std::uint64_t repeated_before_ = 0;           ///< In the phases before this one.
  std::uint64_t reduced_documents_ = 0;
  rpc::JobPhase outcome_ = rpc::JobPhase::Done;
  bool begins_anew_ = false;  ///< As soon as its tasks have stopped.
  bool between_ = false;      ///< One phase has ended, and the next has not begun.
  bool maps_ = false;         ///< The session is that of a map phase through the store.
  JobProgress progress_;
  JobThrottle throttle_;
  std::uint64_t busy_before_us_ = 0;  ///< When the phase began here.
  struct {
    std::uint64_t busy_us = 0;
    std::uint64_t processor_us = 0;
  } before_direct_;  ///< What the job had used when `direct_` began to count.
  MonotonicTime phase_began_;
  MonotonicTime last_begin_;
  MonotonicTime waits_until_;
  std::uint64_t repeated_noted_ = 0;       ///< Of the session.
  std::uint64_t processor_before_us_ = 0;  ///< Used when the session began.
  /// Until then documents may be put that nobody asks for any more.
  std::optional<MonotonicTime> strays_until_;

  // Put.
  struct Settling {
    std::uint64_t round = 0;  ///< Of so many; each is about a part of all ids.
    std::uint64_t rounds = 1;
    std::uint64_t rows = 0;
    std::set<std::string> pages;   ///< That have been read.
    std::vector<GlobalId> wanted;  ///< Rising: documents that have to be there.
    std::vector<bool> found;
    std::vector<std::string> stale;
    std::size_t stale_bytes = 0;
    bool again = false;  ///< There are more stale ones than are remembered.
  };
  Settling settling_;
  std::set<std::string> collected_;  ///< Pages that have been read.
  std::shared_ptr<SinkPump> pump_;
  bool pumps_ = false;  ///< Something is being put or removed here: what ends the phase waits for it.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fjord::mapreduce
