#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/cluster/placement.h"

/// What a placement is worth: how even it is, and how much moves when the cluster changes. Pure; any thread.
namespace fjord {

/// The ideal nodes of all 2^state.bits() buckets, by the distribution's algorithm. At most 2^28 buckets.
std::vector<NodeList> place_all_buckets(const ClusterState& state, const DistributionConfig& distribution);

/// Replicas by node index, up to the last node that has one.
std::vector<std::uint64_t> replicas_by_node(std::span<const NodeList> lists);
/// The same with each replica counting as much as its bucket has bytes.
std::vector<std::uint64_t> bytes_by_node(std::span<const NodeList> lists, std::span<const std::uint64_t> bucket_bytes);

/// Replicas that are on nodes where their bucket was not before.
std::uint64_t moved_replicas(std::span<const NodeList> before, std::span<const NodeList> after);

/// By node index, what part of all replicas each available node should have: in proportion to the capacities, but no
/// group more than it can take with replicas in different groups, and what a node that is not available would have is
/// carried by its own group (RUSH knows no groups to keep apart, there all nodes are one). The sum is 1, or 0 without
/// available nodes.
std::vector<double> fair_shares(const ClusterState& state, const DistributionConfig& distribution);

/// Loads of nodes over their fair part of the sum.
struct PlacementBalance {
  double max_over_mean = 0.0;
  double min_over_mean = 0.0;
  double stddev = 0.0;  ///< Relative to the fair load.
};
/// `loads` and `shares` are by node index; nodes with a share of 0 do not count. All 0 if there is no load.
PlacementBalance balance_of(std::span<const std::uint64_t> loads, std::span<const double> shares);

}  // namespace fjord
