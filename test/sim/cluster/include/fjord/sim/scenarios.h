#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fjord/sim/coverage.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

struct ScenarioOptions {
  std::uint64_t seed = 1;
  Bug bug = Bug::None;
  std::size_t keep_trace = 0;
  bool clock_skew = false;

  // --- Of scenario chaos

  /// What may be drawn; empty: everything.
  std::set<FaultKind> faults;
  /// Of the faults that are drawn only these, by number. Absent: all.
  std::optional<std::set<unsigned>> only_faults;
  Duration span{0};           ///< How long workloads and faults go on; zero: drawn.
  unsigned workload = 0;      ///< 1 to 9: W1 to W9; 0: drawn.
  bool strict_reads = false;  ///< Gets are of `Consistency::Session`, and have to be linearizable (I7).
};

struct ScenarioResult {
  std::string failure;  ///< Empty: every invariant held.
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::string summary;  ///< What the run did, in a line.
  std::vector<std::string> trace;

  // --- Of scenario chaos

  std::vector<std::string> faults;  ///< Those that were made to happen, in words.
  std::set<unsigned> fault_numbers;
  Duration span{0};
  Coverage coverage;
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
/// A cluster, workloads and a schedule of faults that are all drawn from the seed: first faults and workloads (safety),
/// then everything has to become well and to end (liveness). All invariants that can be seen from outside.
ScenarioResult run_chaos(const ScenarioOptions& options);

}  // namespace fjord::sim
