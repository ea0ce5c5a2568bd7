#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fjord/cluster/distribution.h"
#include "fjord/common/clock.h"
#include "fjord/common/result.h"

/// Compares placement algorithms with each other, for `fjord placement compare` and the experiment.
namespace fjord {

/// The CPU time of this process as a clock: it measures computations even while other programs run.
class CpuClock final : public Clock {
 public:
  MonotonicTime now() const override;
  WallTime wall_now() const override { return SystemClock().wall_now(); }
};

/// A change of a cluster with the nodes 0 to n - 1.
enum class ClusterChange {
  Add,       ///< Node n is added at the end of the last group; for RUSH as a batch of its own.
  Remove,    ///< Node n / 2 is removed from the configuration; in trees its place stays, with capacity 0.
  Reweight,  ///< Node n / 2 gets twice the capacity.
};

/// Returns "add", "remove" or "reweight".
std::string_view to_string(ClusterChange change);
/// Returns the inverse of to_string(). Errors: InvalidArgument.
Result<ClusterChange> cluster_change_of(std::string_view name);

struct ComparisonOptions {
  unsigned nodes = 10;  ///< Number of nodes, from 2 to 65000.
  /// Number of leaf groups below the root, of equal size, at most `nodes`; 1: all nodes in the root.
  unsigned groups = 1;
  std::uint64_t buckets = 0;  ///< Number of buckets, from 1 to 2^24.
  unsigned redundancy = 3;
  ClusterChange change = ClusterChange::Add;
};

struct ComparisonResult {
  double max_over_mean = 0;  ///< Highest ratio of a node's replicas to its fair share, before the change.
  double stddev = 0;         ///< Standard deviation of these ratios.
  double max_over_mean_after = 0;
  double moved_share = 0;  ///< Share of all replicas that the change moves.
  /// Least share that the change has to move: all replicas of the node, or the change of its fair share.
  double least_share = 0;
  /// Nanoseconds of one call of a prepared PlacementMap; the fastest of eight parts of the buckets counts.
  double map_ns = 0;
  double prepare_us = 0;

  double moved_over_least() const { return least_share > 0 ? moved_share / least_share : 0; }
};

/// Computes the placement of all buckets before and after a change. Errors: InvalidArgument if an option is out of its
/// range.
Result<ComparisonResult> compare_placement(const PlacementSettings& settings, const ComparisonOptions& options,
                                           const Clock& clock);

}  // namespace fjord
