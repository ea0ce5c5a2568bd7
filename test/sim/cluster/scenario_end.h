#pragma once

#include <string>

#include "fjord/sim/scenarios.h"
#include "operations_workload.h"

/// The checks that scenarios make when their faults are over.
namespace fjord::sim {

struct ScenarioEnd {
  bool all_ended = false;  ///< Every operation ended.
  bool steady = false;     ///< The replicas became equal, and lie on their ideal nodes.
  bool readable = false;   ///< Every document was read after the cluster was steady.
};

/// Returns the first invariant that the end of a run breaks; empty: none.
inline std::string check_end(SimCluster& cluster, const History& history, const ScenarioEnd& end) {
  if (!end.all_ended) return "I16: an operation never ended";
  if (!end.steady) return "I3: replicas did not converge: " + cluster.check_replicas();
  if (!end.readable) return "I16: a document could not be read when all faults were over: " + last_unread(history);
  return {};
}

/// Adds the events of the run to its result.
/// `of_copy` are events of a copy of the cluster, which follow them.
inline void add_trace(SimCluster& cluster, ScenarioResult& result, const std::vector<std::string>& of_copy = {}) {
  result.trace_hash = cluster.scheduler().trace_hash();
  result.events = cluster.scheduler().events_run();
  result.trace.assign(cluster.scheduler().kept_trace().begin(), cluster.scheduler().kept_trace().end());
  if (!result.trace.empty()) result.trace.insert(result.trace.end(), of_copy.begin(), of_copy.end());
}

}  // namespace fjord::sim
