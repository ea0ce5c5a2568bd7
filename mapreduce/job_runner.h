#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "direct_reduce.h"
#include "fjord/mapreduce/job_service.h"
#include "fjord/visitors/visitor_session.h"
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
};

using JobRows = Rows;

/// Takes one job through its phases: map, reduce, clean-up. With the direct shuffle the runner itself reduces, as map
/// tasks end, and nothing is put; if that needs more memory than the job may take and the shuffle is the system's
/// choice, the job begins anew through the store. It also begins anew when the distribution bits change and a phase
/// cannot be finished because of that.
///
/// Threading: confined to the environment's executor. Lifetime: destroying it stops the job without cleaning up.
class JobRunner {
 public:
  /// `job` has id and spec. `on_finished` may destroy the runner.
  JobRunner(rpc::JobStatus job, RunnerEnvironment environment, Random random, std::function<void()> on_finished);

  void start();
  /// Ends the job as Cancelled; the documents between map and reduce are removed first.
  void cancel();
  /// The executor is gone: does nothing any more, not even when destroyed.
  void abandon();
  /// The phase is Done, Failed or Cancelled once on_finished was called.
  rpc::JobStatus status() const;
  /// Of a job that is done and was reduced here; once.
  JobRows take_rows() { return std::move(rows_); }

 private:
  visitors::VisitorSessionOptions session_options(const char* library) const;
  void run(visitors::VisitorSessionOptions options, std::function<void(const TaskReport&)> on_task,
           std::function<void(std::uint64_t)> on_known, std::function<void(Status)> on_finished);
  bool choose_shuffle();
  void start_session(visitors::VisitorSessionOptions options, visitors::VisitorSessionCallbacks callbacks);
  visitors::VisitorSessionOptions map_options() const;
  void choose_output();
  void map_direct(std::optional<std::vector<BucketId>> buckets);
  void on_direct(const Status& status);
  void finish_direct();
  void switch_to_store();
  void map();
  void reduce();
  void clean_up();
  void fail(const Status& status);
  bool may_begin_anew(const Status& status) const;
  void stop();
  void begin_anew();
  void end();

  rpc::JobStatus job_;
  RunnerEnvironment environment_;
  Random random_;
  std::function<void()> on_finished_;
  TaskSpec spec_;
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot_;  ///< Of the start: holds the types of the application.
  std::unique_ptr<Application> application_;
  std::unique_ptr<DirectReduce> direct_;
  JobRows rows_;
  std::unique_ptr<visitors::VisitorSession> session_;
  std::uint64_t repeated_before_ = 0;  ///< In the phases before this one.
  std::uint64_t reduced_documents_ = 0;
  rpc::JobPhase outcome_ = rpc::JobPhase::Done;
  unsigned bits_ = 0;         ///< Of the cluster state in which the job began.
  bool begins_anew_ = false;  ///< As soon as what it put is removed.
  unsigned begun_anew_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace fjord::mapreduce
