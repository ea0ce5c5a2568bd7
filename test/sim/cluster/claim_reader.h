#pragma once

#include <cstdint>
#include <string>

#include "acknowledged.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Uses a cluster as clients do and compares what they get with what was acknowledged. Each call runs the cluster until
/// it has its answer, or until `limit` of virtual time has passed. It returns an empty string, or what did not go.
/// Lifetime: the cluster and the record outlive it.
class ClaimReader {
 public:
  ClaimReader(SimCluster& cluster, const Acknowledged& acknowledged, Random random)
      : cluster_(cluster), acknowledged_(acknowledged), random_(random) {}

  /// Gets every document, at most some hundred that are drawn.
  /// `may_refuse`: only wrong answers count, not refusals.
  std::string get_all(Duration limit, bool may_refuse = false);
  /// One visit of everything.
  std::string visit(Duration limit);
  /// A job that counts the documents of a type that has some; nothing is done if there is none.
  std::string count_by_job(Duration limit);
  /// Puts a new document into each distribution bucket. Precondition: the schemas have the type "item".
  std::string put_everywhere(unsigned bits, Duration limit);

 private:
  SimCluster& cluster_;
  const Acknowledged& acknowledged_;
  Random random_;
};

}  // namespace fjord::sim
