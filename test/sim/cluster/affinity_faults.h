#pragma once

#include <cstdint>
#include <memory>

#include "fjord/search/voting_tables.h"
#include "operator.h"

namespace fjord::sim {

/// Voting tables of random weights, some for another number of replicas or of another corpus, and some that cannot be
/// read at present. Which table a number has depends on the number alone.
std::unique_ptr<search::VotingTableSource> random_voting_tables(unsigned redundancy);

/// An operator who changes at random how replicas are chosen for searches: tables, shadow caches, shares, sizes of
/// caches. No answer may change by it (I24).
///
/// Lifetime: the cluster outlives it; it outlives the run of the cluster.
class AffinityOperator {
 public:
  explicit AffinityOperator(SimCluster& cluster) : cluster_(cluster), operator_(cluster) {}
  void start() { schedule(); }
  void stop() { stopped_ = true; }
  bool is_idle() const { return operator_.is_idle(); }
  std::uint64_t changes() const { return changes_; }

 private:
  void schedule();
  void change();

  SimCluster& cluster_;
  Operator operator_;
  bool stopped_ = false;
  std::uint64_t changes_ = 0;
};

}  // namespace fjord::sim
