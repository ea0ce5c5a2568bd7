#pragma once

#include <string>
#include <vector>

#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

struct ScenarioOptions {
  std::uint64_t seed = 1;
  Bug bug = Bug::None;
  std::size_t keep_trace = 0;
  bool clock_skew = false;
};

struct ScenarioResult {
  std::string failure;  ///< Empty: every invariant held.
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::string summary;  ///< What the run did, in a line.
  std::vector<std::string> trace;
};

/// Random puts, gets and removes against a model, with crashes and restarts of nodes and delayed, lost and doubled
/// messages (I1, I2, I3, I6).
ScenarioResult run_operations(const ScenarioOptions& options);
/// Counters, sets and lists that clients change by updates and by test-and-set, with tokens, under the same faults:
/// each change happened exactly once, and what was refused did not (I1, I3, I5, I6).
ScenarioResult run_updates(const ScenarioOptions& options);
/// The same as operations while bits flip in the files of one storage node, which is killed and started again. The
/// others have what it loses: nothing lost is missed, nothing damaged is served, and in the end nothing is damaged (I1,
/// I2, I3, I13).
ScenarioResult run_damage(const ScenarioOptions& options);
/// A MapReduce job over documents that do not change, with crashes at random moments (I9).
ScenarioResult run_job(const ScenarioOptions& options);

}  // namespace fjord::sim
