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

/// What happens to a cluster of nodes 0 to n - 1.
enum class ClusterChange {
  Add,       ///< Node n comes, at the end of the last group; with RUSH as a batch of its own.
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
  double max_over_mean = 0;  ///< Replicas on nodes over what is fair by the capacities, before the change.
  double stddev = 0;         ///< Of the same, relative.
  double max_over_mean_after = 0;
  double moved_share = 0;  ///< Of all replicas.
  double least_share = 0;  ///< What has to move: the node's replicas, or what its fair share changes by.
  double map_ns = 0;       ///< One mapping of a prepared map; the fastest of eight parts of the buckets.
  double prepare_us = 0;

  double moved_over_least() const { return least_share > 0 ? moved_share / least_share : 0; }
};

/// Errors: InvalidArgument if an option is out of its range.
Result<ComparisonResult> compare_placement(const PlacementSettings& settings, const ComparisonOptions& options,
                                           const Clock& clock);

}  // namespace fjord
