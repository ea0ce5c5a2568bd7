#pragma once

#include <cstdint>

#include "fjord/cluster/placement.h"

namespace fjord {

/// Returns true if the exception is in force for a bucket that the algorithm places on `list` (see PlacementException).
bool exception_holds(const PlacementException& exception, const NodeList& list, const ClusterState& state,
                     const DistributionConfig& distribution);

/// Returns the algorithm's list with these exceptions applied in order.
NodeList with_exceptions_applied(const NodeList& list, std::span<const PlacementException> exceptions,
                                 const ClusterState& state, const DistributionConfig& distribution);

/// Returns the algorithm's list with the state's exceptions for the bucket `key` applied. Allocates nothing.
inline NodeList with_exceptions(const NodeList& list, std::uint64_t key, const ClusterState& state,
                                const DistributionConfig& distribution) {
  const std::span<const PlacementException> exceptions = state.exceptions_of(key);
  return exceptions.empty() ? list : with_exceptions_applied(list, exceptions, state, distribution);
}

}  // namespace fjord
