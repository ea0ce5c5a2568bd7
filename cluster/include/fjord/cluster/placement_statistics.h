#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/cluster/placement.h"

/// Measures a placement: how even it is, and how much moves when the cluster changes. Pure; any thread.
namespace fjord {

/// Returns the ideal nodes of all 2^state.bits() buckets, by the distribution's algorithm. At most 2^28 buckets.
std::vector<NodeList> place_all_buckets(const ClusterState& state, const DistributionConfig& distribution);

/// Returns the number of replicas by node index, up to the last node that has one.
std::vector<std::uint64_t> replicas_by_node(std::span<const NodeList> lists);
/// Returns the bytes by node index: each replica has the bytes of its bucket.
std::vector<std::uint64_t> bytes_by_node(std::span<const NodeList> lists, std::span<const std::uint64_t> bucket_bytes);

/// Returns the number of replicas on nodes that had no replica of the same bucket before.
std::uint64_t moved_replicas(std::span<const NodeList> before, std::span<const NodeList> after);

/// Returns, by node index, the share of all replicas that each available node should have. It is in proportion to the
/// capacities, but no group gets more than it can hold with replicas in different groups. The share of a node that is
/// not available goes to its own group (RUSH keeps no groups apart, so all nodes are one group). The sum is 1, or 0
/// without available nodes.
std::vector<double> fair_shares(const ClusterState& state, const DistributionConfig& distribution);

/// How evenly loads are placed. Each figure is about the ratio of a node's load to its fair part of the sum of loads.
struct PlacementBalance {
  double max_over_mean = 0.0;
  double min_over_mean = 0.0;
  double stddev = 0.0;  ///< Standard deviation of the ratios, around 1.
};
/// `loads` and `shares` are by node index; nodes with a share of 0 are ignored. All ratios are 0 without any load.
PlacementBalance balance_of(std::span<const std::uint64_t> loads, std::span<const double> shares);

}  // namespace fjord
