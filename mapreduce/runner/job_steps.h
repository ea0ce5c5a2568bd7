#pragma once

#include <optional>

#include "fjord/mapreduce/job_state.h"

/// The steps of a job and their order. Pure functions: the runner asks them what comes next.
namespace fjord::mapreduce {

enum class Step {
  Map,           ///< Through the store: map tasks put tuple documents.
  Reduce,        ///< Through the store: reduce tasks read tuple documents and put results, rows or documents.
  DirectMap,     ///< Map tasks send tuples to the runner.
  DirectReduce,  ///< The runner reduces the tuples that it has received.
  Pages,         ///< The runner writes rows as pages: those that a limit leaves, or those that it made itself.
  Put,           ///< Rows become lasting documents; documents without a row are removed.
  PassDone,      ///< Waits for late writes, then the next pass begins or the job ends.
  KeepRows,      ///< Results of a direct job are stored beside the record.
  MoveOutput,    ///< The documents that the job has put are removed; afterwards it puts them elsewhere.
  CleanUp,       ///< Tuple documents are removed.
  Over,
};

enum class StepEvent {
  Done,
  TooLarge,  ///< The groups of a direct job do not fit into this process, and it may use the store.
  Restart,   ///< The tasks can no longer be finished; the pass starts again.
  Move,   ///< The documents of the step are refused for lack of space; the pass starts again and puts them elsewhere.
  Abort,  ///< The job has failed or was cancelled.
};

/// What decides about the steps of the current pass.
struct PassShape {
  bool is_direct = false;       ///< The pass uses the direct shuffle.
  bool puts_rows = false;       ///< The next pass reads the rows, or they become documents.
  bool is_limited = false;      ///< The runner decides which of the rows remain.
  bool puts_documents = false;  ///< Rows become lasting documents.
  bool is_last = false;         ///< No pass follows.
  bool has_output = false;      ///< Documents may have been put that clean-up removes.
  bool keeps_rows = false;      ///< Results are stored beside the record before clean-up.
};

/// Returns the first step of a pass.
inline Step first_step(const PassShape& shape) { return shape.is_direct ? Step::DirectMap : Step::Map; }

/// Returns the step that follows `step` after `event`. After PassDone of a pass that is not the last one, this is the
/// first step of the next pass; its shuffle is not known yet, so the runner plans that pass first.
Step next_step(Step step, StepEvent event, const PassShape& shape);

/// Returns the step with which a new owner continues the job; nullopt if the pass must start again. That is so for a
/// direct job, which has lost its groups with its process, and if the cluster's distribution bits (`bits`) are not
/// those that the tasks were made for.
std::optional<Step> continued_step(const JobState& job, unsigned bits);

/// Returns the phase of a job in this step, as users see it and the record stores it; `before` in steps that are part
/// of the phase before them.
rpc::JobPhase phase_of(Step step, rpc::JobPhase before);

/// True if the record must be written before the step begins, because a new owner has to know that it may have begun.
bool is_recorded_first(Step step);

}  // namespace fjord::mapreduce
