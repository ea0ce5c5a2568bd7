#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fjord/cluster/cluster_state.h"
#include "fjord/cluster/distribution.h"

namespace fjord {

struct ExceptionPlanOptions {
  /// Limit for each node: its bytes may be at most this many times its fair share.
  double max_over_mean = 1.02;
  /// The largest number of exceptions in a plan.
  std::size_t exceptions_max = 4096;
};

struct ExceptionPlan {
  /// The exceptions to pass to ClusterState::set_exceptions().
  std::vector<PlacementException> exceptions;
  /// Highest ratio of a node's bytes to its fair share (fair_shares()): by the algorithm alone, with the exceptions of
  /// the present state, and with the exceptions of the plan.
  double without = 0.0;
  double before = 0.0;
  double after = 0.0;
};

/// Plans which buckets to keep on other nodes than the algorithm says, so that no node has more bytes than
/// `options.max_over_mean` times its fair share. `bucket_bytes` has the bytes of one replica of each of the
/// 2^state.bits() buckets.
///
/// The state's exceptions stay as long as they are in force and needed, so a plan made after a small change is nearly
/// equal. An exception is removed when its bucket fits where the algorithm puts it, with half of the allowed excess to
/// spare. At most one replica of a bucket is moved, the largest that fit first, and groups stay apart. Nodes that
/// cannot be relieved by moving single buckets (e.g. one bucket is larger than the mean) stay above the limit.
///
/// Pure: the same arguments give the same plan. Any thread. At most 2^24 buckets.
ExceptionPlan plan_exceptions(std::span<const std::uint64_t> bucket_bytes, const ClusterState& state,
                              const DistributionConfig& distribution, const ExceptionPlanOptions& options = {});

}  // namespace fjord
