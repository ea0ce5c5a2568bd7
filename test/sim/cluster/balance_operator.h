#pragma once

#include <cstdint>

#include "operator.h"

namespace fjord::sim {

/// An operator who plans, applies and takes back steps of the balancer at random, also plans that are outdated, shifts
/// reads between replicas, and balances by bytes in between.
///
/// Lifetime: the cluster outlives it; it outlives the run of the cluster.
class BalanceOperator {
 public:
  explicit BalanceOperator(SimCluster& cluster) : cluster_(cluster), operator_(cluster) {}
  void start() { schedule(); }
  void stop() { stopped_ = true; }
  bool is_idle() const { return operator_.is_idle(); }
  std::uint64_t applied() const { return applied_; }
  std::uint64_t reverted() const { return reverted_; }
  std::uint64_t outdated() const { return outdated_; }

 private:
  void schedule();
  void step();
  void plan_and_apply();
  /// Moves random parts of the reads of random buckets.
  void shift_reads();
  void apply(const rpc::BalancePlan& plan);
  void revert();

  SimCluster& cluster_;
  Operator operator_;
  bool stopped_ = false;
  std::uint64_t applied_ = 0;
  std::uint64_t reverted_ = 0;
  std::uint64_t outdated_ = 0;  ///< Number of plans that were refused because they were for an older state.
};

}  // namespace fjord::sim
