#pragma once

#include <memory>

#include "fjord/cluster/placement.h"

/// The algorithms behind placement_algorithm(). Their results never change, because they say where data lies (golden
/// lists in test/cluster/placement_kinds_test.cpp).
namespace fjord {

using StatePointer = std::shared_ptr<const ClusterState>;
using DistributionPointer = std::shared_ptr<const DistributionConfig>;

/// Makes a map for `settings` with hierarchical algorithms, with or without a rule.
std::shared_ptr<const PlacementMap> make_tree_map(StatePointer state, DistributionPointer distribution,
                                                  const PlacementSettings& settings);
std::shared_ptr<const PlacementMap> make_rush_map(StatePointer state, DistributionPointer distribution);
std::shared_ptr<const PlacementMap> make_modulo_map(StatePointer state, DistributionPointer distribution);
std::shared_ptr<const PlacementMap> make_consistent_map(StatePointer state, DistributionPointer distribution,
                                                        unsigned tokens_per_node);
std::shared_ptr<const PlacementMap> make_rendezvous_map(StatePointer state, DistributionPointer distribution);

/// Applies the exceptions of the state to the result of place().
class MapWithExceptions : public PlacementMap {
 public:
  MapWithExceptions(StatePointer state, DistributionPointer distribution)
      : state_(std::move(state)), distribution_(std::move(distribution)) {}
  NodeList ideal_nodes(BucketId bucket) const final;

 protected:
  /// Returns the nodes of a bucket by its placement_key().
  virtual NodeList place(std::uint64_t key) const = 0;
  const ClusterState& state() const { return *state_; }
  const DistributionConfig& distribution() const { return *distribution_; }

 private:
  StatePointer state_;
  DistributionPointer distribution_;
};

}  // namespace fjord
