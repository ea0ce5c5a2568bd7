#pragma once

#include <functional>
#include <memory>
#include <string>

#include "direct_reduce.h"
#include "fjord/mapreduce/job_records.h"
#include "fjord/mapreduce/job_service.h"
#include "job_limits.h"
#include "job_settings.h"

namespace fjord::mapreduce {

class CurrentPass;
class JobTasks;
class RowPump;

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

/// The rows of a job, once they are in this process.
struct RowsHere {
  JobRows rows;
  bool are_there = false;

  std::size_t bytes() const { return rows.bytes(); }
  void clear() { *this = {}; }
};

/// The runner as its phases see it. Each call may be made inside a callback of a session or of the pump.
class PhaseHost {
 public:
  /// The phase has done its work. The host destroys it later.
  virtual void ended() = 0;
  /// The job has failed for this reason, or starts again because of it.
  virtual void failed(const Status& status) = 0;
  /// The groups do not fit into this process: the job restarts through the store, or fails with `status` if the user
  /// asked for the direct shuffle.
  virtual void too_large(const Status& status) = 0;
  /// Calls start() of the phase later, for its next part; not while the job is paused.
  virtual void continue_later() = 0;
  /// The pump has stopped because the job does not continue.
  virtual void pump_stopped() = 0;
  /// False if the job has failed, was cancelled, or is about to start again.
  virtual bool goes_on() const = 0;
  /// True while the job may put or remove lasting documents.
  virtual bool puts_documents() const = 0;
  /// Notes that tasks or a pump that put or remove lasting documents were abandoned.
  virtual void note_late_writes() = 0;

 protected:
  ~PhaseHost() = default;
};

/// What the phases of a job work with. Lifetime: the runner owns all of it; it outlives every phase.
struct JobParts {
  JobState& job;
  const JobSettings& settings;
  const RunnerEnvironment& environment;
  const RunnerCallbacks& callbacks;
  CurrentPass& pass;
  JobTasks& tasks;
  RowPump& pump;
  RowsHere& rows;
  std::unique_ptr<DirectReduce>& groups;  ///< The groups of a direct job, from its map to its reduce phase.
  PhaseHost& host;

  MemoryLimit memory() const { return memory_limit(settings, environment.job_memory_bytes); }
};

/// One phase of a job. It runs tasks, or works in the runner's process, and says at its end how it ended
/// (PhaseHost::ended, failed, too_large).
///
/// Threading: confined to the runner's executor. Lifetime: may be destroyed when no call of it is on the stack;
/// callbacks that come later do nothing.
class Phase {
 public:
  virtual ~Phase() = default;
  /// Begins the phase, continues it after stop(), or begins its next part after PhaseHost::continue_later().
  virtual void start() = 0;
  /// Called before the tasks of the phase are abandoned. What is done remains done if start() is called again.
  virtual void stop() {}
  /// Returns the visit cursor from which another process can continue the phase; empty: it starts at the beginning.
  virtual std::string cursor() const { return {}; }
  /// False while the phase works in this process, so that pausing does not interrupt it.
  virtual bool is_pausable() const { return true; }
};

}  // namespace fjord::mapreduce
