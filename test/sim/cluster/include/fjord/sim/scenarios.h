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
  /// Scenarios chaos, operations and damage: what is put to the test of what Fjord says of itself (I25): "drawn" by the
  /// seed, "none", or always "destroy", "lose", "silence", "damage", "files" or "stop".
  std::string claims = "drawn";

  // --- Scenario chaos only

  /// Kinds of faults that may be drawn; empty: all.
  std::set<FaultKind> faults;
  /// Numbers of the drawn faults to carry out; absent: all.
  std::optional<std::set<unsigned>> only_faults;
  Duration span{0};           ///< Duration of workloads and faults; zero: drawn.
  unsigned bits = 0;          ///< Distribution bits; 0: drawn.
  unsigned workload = 0;      ///< Workload, 1 to 9 for W1 to W9; 0: drawn.
  bool strict_reads = false;  ///< Gets use `Consistency::Session` and have to be linearizable (I7).
};

struct ScenarioResult {
  std::string failure;  ///< The first broken invariant; empty: every invariant held.
  std::uint64_t trace_hash = 0;
  std::uint64_t events = 0;
  std::string summary;  ///< One line about what the run did.
  std::vector<std::string> trace;

  // --- Scenario chaos only

  std::vector<std::string> faults;  ///< Descriptions of the faults that were carried out.
  std::set<unsigned> fault_numbers;
  Duration span{0};
  Coverage coverage;
};

/// Random puts, gets and removes against a model, while nodes crash and restart and messages are delayed, lost and
/// duplicated (I1, I2, I3, I6).
ScenarioResult run_operations(const ScenarioOptions& options);
/// Counters, sets and lists that clients change by updates and test-and-sets with idempotency keys, under the same
/// faults. Each acknowledged change is applied exactly once, and a refused change never (I1, I3, I5, I6).
ScenarioResult run_updates(const ScenarioOptions& options);
/// Scenario operations while bits flip in the files of one storage node, which is killed and restarted. The other nodes
/// hold intact replicas: no data is lost, no damaged data is served, and in the end nothing is damaged (I1, I2, I3,
/// I13).
ScenarioResult run_damage(const ScenarioOptions& options);
/// A MapReduce job over documents that do not change, with crashes at random moments (I9).
ScenarioResult run_job(const ScenarioOptions& options);
/// Scenario operations while the balancer and an operator move buckets by load (I1, I2, I3, I6, I20 to I23).
ScenarioResult run_balance(const ScenarioOptions& options);
/// Scenario balance while distributors and storage nodes join, restart, leave or change their capacity, with links of
/// different delays (I1, I2, I3, I6, I20 to I23).
ScenarioResult run_quantum(const ScenarioOptions& options);
/// Searches while groups, keywords and ads are written, buckets are moved, and nodes crash: answers equal those of one
/// process over the same documents (I18, I19).
ScenarioResult run_search(const ScenarioOptions& options);
/// A cluster, workloads and a schedule of faults, all drawn from the seed. Faults and workloads run first (safety);
/// afterwards the cluster has to become steady and all operations have to end (liveness). Checks all invariants that
/// can be seen from outside.
ScenarioResult run_chaos(const ScenarioOptions& options);

}  // namespace fjord::sim
