#pragma once

#include <cstdint>
#include <string_view>

#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::mapreduce {

/// Location of output bucket 0 of a job that has `buckets` of them, one location after the other: of 64 places that
/// follow from the name `job`, the one whose busiest storage node has the fewest replicas to write, and then the fewest
/// buckets to reduce, which the first node of a bucket does. By chance alone one of three nodes has four of six buckets
/// every other time.
///
/// The low bits are zero, so the locations lie in different buckets as long as there are bits enough.
std::uint64_t spread_output(const rpc::ClusterSnapshot& snapshot, std::uint32_t buckets, std::string_view job);

}  // namespace fjord::mapreduce
