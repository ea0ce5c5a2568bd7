#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fjord/mapreduce/passes.h"
#include "job_steps.h"
#include "phase.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// The pass that a job is in: its plan, its application, and what its tasks read and put.
///
/// Threading: confined. Lifetime: `job`, `settings` and `environment` outlive it.
class CurrentPass {
 public:
  CurrentPass(JobState& job, const JobSettings& settings, const RunnerEnvironment& environment)
      : job_(job), settings_(settings), environment_(environment) {}

  /// Plans the pass after those that are done, and chooses its shuffle if none is in use. Errors: those of plan_pass();
  /// InvalidArgument if this process has another version of the application.
  Status plan();
  /// True if restarting the pass after `error` may help, because the distribution bits have changed. Tasks are named
  /// after buckets, which more bits split: a bucket that had not been read by then no longer exists as a whole.
  bool may_restart(const Status& error) const;
  /// Sets the counts of the pass to those of its beginning.
  void reset_counts();
  /// Records the pass, whose counts are `counts`, as done. plan() then plans the next one, which has a run of its own,
  /// so that their documents never mix.
  void end(const PassCounts& counts);

  bool is_planned() const { return plan_.application != nullptr; }
  Application& application() const { return *plan_.application; }
  std::shared_ptr<Application> shared_application() const { return plan_.application; }
  /// Snapshot of the cluster when the pass was planned; owns the types that the application uses.
  const std::shared_ptr<const rpc::ClusterSnapshot>& snapshot() const { return snapshot_; }
  unsigned redundancy() const { return snapshot_->distribution().redundancy(); }
  /// The lasting documents that rows become; without a type there are none.
  const rpc::RowTarget& target() const { return plan_.pass.into; }
  bool puts_documents() const { return !target().type.empty(); }
  bool is_last() const { return plan_.is_last; }
  bool reads_rows() const { return plan_.reads_rows; }
  /// True if the next pass reads the rows, or they become documents.
  bool puts_rows() const { return !plan_.is_last || puts_documents(); }
  /// True if the rows are put and the application has a limit, so that the runner decides which rows remain.
  bool is_limited() const { return puts_rows() && application().is_limited(); }
  PassShape shape() const;

  /// The parameters of all tasks of the pass.
  TaskSpec task() const;
  TaskSpec map_task() const;
  /// Returns the parameters of reduce tasks. If a limit may drop rows, tasks write pages of rows but no results yet.
  TaskSpec reduce_task() const;
  TaskSpec put_task() const;

  /// Buckets of all destinations.
  std::vector<BucketId> output_buckets() const;
  std::string input_selection() const;
  std::string tuples_selection() const;
  /// Returns the selection of the documents with pages of rows. `is_whole`: of the pages that hold all rows, before the
  /// runner has applied its limits.
  std::string rows_selection(bool is_whole) const;
  std::string target_selection() const;
  /// Documents of all runs and passes that clean-up removes.
  std::string clean_up_selection() const;
  /// Result documents of the job.
  std::string results_selection() const;

  /// Checks that the pass read exactly what the one before it put, and that map() did not fail on all documents.
  /// Errors: Corruption; InvalidArgument.
  Status check_input() const;

 private:
  void choose_shuffle();
  /// The version of the application that all tasks of the pass must have.
  const std::string& version() const;

  JobState& job_;
  const JobSettings& settings_;
  const RunnerEnvironment& environment_;
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot_;
  PassPlan plan_;
};

}  // namespace fjord::mapreduce
