#pragma once

#include <cstdint>
#include <string_view>

#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::mapreduce {

/// Returns the location of output bucket 0 of a job with `buckets` output buckets; the others have the following
/// locations. The function compares 64 candidates derived from the name `job`. It takes the one whose busiest storage
/// node has the fewest replicas to write, and among equals the fewest buckets to reduce, which the first node of a
/// bucket does. With a single random candidate, one of three nodes would have four of six buckets every other time.
///
/// The low bits of the location are zero, so the locations are in different buckets if there are enough distribution
/// bits.
std::uint64_t spread_output(const rpc::ClusterSnapshot& snapshot, std::uint32_t buckets, std::string_view job);

}  // namespace fjord::mapreduce
