#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fjord/rpc/cluster_snapshot.h"
#include "full_nodes.h"

namespace fjord::mapreduce {

/// The output buckets of a job have the locations from `base` on.
struct OutputPlace {
  std::uint64_t base = 0;
  std::uint32_t buckets = 0;
};

/// Returns the location of output bucket 0 of a job with `buckets` output buckets; the others have the following
/// locations. The function compares 64 candidates derived from the name `job`. It takes the one whose busiest storage
/// node has the fewest replicas to write; among equals, the fewest buckets to reduce (the first ideal node of a bucket
/// reduces it). With a single random candidate, one of three nodes would have four of six buckets every other time.
///
/// The low bits of the location are zero, so the locations are in different buckets if there are enough distribution
/// bits.
std::uint64_t spread_output(const rpc::ClusterSnapshot& snapshot, std::uint32_t buckets, std::string_view job);

/// As spread_output(), but no output bucket is refused by a full node. If there is no place for `buckets` output
/// buckets together, the result has fewer: half of them, a quarter, and so on. Returns nullopt if the full nodes refuse
/// all buckets.
std::optional<OutputPlace> place_beside(const FullNodes& full, const rpc::ClusterSnapshot& snapshot,
                                        std::uint32_t buckets, std::string_view job);

}  // namespace fjord::mapreduce
