#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "balance_loads.h"
#include "balance_rules.h"
#include "fjord/balancer/model.h"
#include "fjord/cluster/cluster_view.h"

namespace fjord::fleetcontroller {

/// Where the replicas of all distribution buckets lie under one cluster state, computed once for each state.
class BalancePlaces {
 public:
  /// At most kBalanceBitsMax distribution bits; with more there are no holders.
  void update(const ClusterView& active);
  std::uint64_t version() const { return view_.version(); }
  /// The view by which replicas are placed, with the table of overrides.
  const ClusterView& view() const { return view_; }
  /// The nodes of each bucket, by its bits.
  std::span<const NodeList> holders() const { return holders_; }
  /// The same without the table of overrides.
  std::shared_ptr<const std::vector<NodeList>> homes() const { return homes_; }

 private:
  ClusterView view_;
  std::vector<NodeList> holders_;
  std::shared_ptr<const std::vector<NodeList>> homes_;
};

struct ModelInput {
  const BalancePlaces& places;
  const BalanceLoads& loads;
  const BalanceMoves& last;
  std::span<const std::uint16_t> full;  ///< Nodes whose disk has reached the warn stage.
  LoadMeasure measure = LoadMeasure::Work;
  bool reads_at_random = true;  ///< balancer.reads is random: the read shares alone say where reads go.
  double bytes_part = 0.01;     ///< Part of all bytes that a step may move.
  std::uint64_t round = 0;
};

/// Returns the nodes that are up and have no loads for the cluster's number of distribution bits yet, one line each.
std::vector<std::string> unknown_loads(const BalancePlaces& places, const BalanceLoads& loads);

/// Makes the model of a step, with one slice for each distribution bucket. The load of a bucket is the sum over all its
/// replicas. It is given to the nodes where the bucket belongs, so that the load of a replica which has just moved is
/// not lost. Reads at random are given to the replicas by their read shares. Searches, and reads by load or affinity,
/// are given to the replicas that had them (Holder::own_load).
balancer::BalanceModel make_model(const ModelInput& input);

}  // namespace fjord::fleetcontroller
