#pragma once

#include <memory>
#include <optional>

#include "current_pass.h"
#include "fjord/common/callback_guard.h"
#include "full_nodes.h"
#include "job_steps.h"
#include "output_spread.h"
#include "phase.h"

namespace fjord::mapreduce {

/// Chooses where a job puts its tuple documents, pages and results, so that no full storage node refuses them. If some
/// are refused nevertheless, decides what the job does.
///
/// Threading: confined to the runner's executor. Lifetime: destroying it ends it without a callback; the arguments of
/// the constructor outlive it.
class OutputPlacement {
 public:
  OutputPlacement(JobState& job, const RunnerEnvironment& environment, const CurrentPass& pass)
      : job_(job), environment_(environment), pass_(pass) {}

  /// Chooses the output buckets and calls `done`, now or later. A job keeps the ones it has, because they may contain
  /// its documents. Errors: NoSpace if full nodes refuse all buckets; it names them, their use, and the limit.
  void prepare(UniqueFunction<void(Status)> done);
  /// Forgets the place, after the documents there were removed.
  void leave() { job_.output_buckets = 0; }

  /// Finds a way for a job that cannot put the documents of `step`: Move if they can be put elsewhere; Restart after
  /// making the job direct, which puts none; nullopt if there is no way. `refusal`: NoSpace, from a storage node or
  /// prepare().
  std::optional<StepEvent> recover(const Status& refusal, Step step);
  /// The groups of the job do not fit into this process. Returns OK if the job may use the store; else the error of the
  /// job: `too_large`, or NoSpace if it is direct because the store refuses it.
  Status check_too_large(const Status& too_large);

 private:
  void use(const OutputPlace& place);
  bool may_move(Step step) const;
  bool may_be_direct(Step step) const;

  JobState& job_;
  const RunnerEnvironment& environment_;
  const CurrentPass& pass_;
  FullNodes refusing_;  ///< Nodes that have refused puts of the job.
  unsigned moves_ = 0;
  bool was_too_large_ = false;
  Status refusal_;  ///< Why the job does not use the store; OK if it may.
  CallbackGuard guard_;
};

/// Returns the error of a job that fails because of `refusal`, with what to do about it.
Status with_advice(const Status& refusal);

}  // namespace fjord::mapreduce
