#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fjord/cluster/distribution.h"
#include "fjord/common/clock.h"
#include "fjord/common/result.h"

/// Placement algorithms measured against each other, for `fjord placement compare` and the experiment.
namespace fjord {

/// The CPU time of this process as a clock, so that computations can be measured while other programs run.
class CpuClock final : public Clock {
 public:
  MonotonicTime now() const override;
  WallTime wall_now() const override { return SystemClock().wall_now(); }
};

/// A change of a cluster with the nodes 0 to n - 1.
enum class ClusterChange {
  Add,       ///< Node n is added at the end of the last group; with RUSH as a batch of its own.
  Remove,    ///< Node n / 2 is taken out of the configuration; in trees its place stays, with capacity 0.
  Reweight,  ///< Node n / 2 gets twice the capacity.
};

/// "add", "remove", "reweight".
std::string_view to_string(ClusterChange change);
/// Errors: InvalidArgument.
Result<ClusterChange> cluster_change_of(std::string_view name);

struct ComparisonOptions {
  unsigned nodes = 10;        ///< From 2 to 65000.
  unsigned groups = 1;        ///< Leaf groups of equal size below the root; 1: all nodes in the root. At most `nodes`.
  std::uint64_t buckets = 0;  ///< From 1 to 2^24.
  unsigned redundancy = 3;
  ClusterChange change = ClusterChange::Add;
};

struct ComparisonResult {
  double max_over_mean = 0;  ///< Highest ratio of a node's replicas to its fair share, before the change.
  double stddev = 0;         ///< Standard deviation of these ratios.
  double max_over_mean_after = 0;
  double moved_share = 0;  ///< Share of all replicas that moves.
  double least_share = 0;  ///< Share that has to move: the node's replicas, or the change of its fair share.
  double map_ns = 0;       ///< Time of one mapping of a prepared map, in the fastest of eight parts of the buckets.
  double prepare_us = 0;

  double moved_over_least() const { return least_share > 0 ? moved_share / least_share : 0; }
};

/// Errors: InvalidArgument if an option is out of its range.
Result<ComparisonResult> compare_placement(const PlacementSettings& settings, const ComparisonOptions& options,
                                           const Clock& clock);

}  // namespace fjord
