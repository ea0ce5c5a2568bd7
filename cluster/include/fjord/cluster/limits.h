#pragma once

#include <cstdint>

namespace fjord {

/// Largest number of buckets on one storage node, and owned by one distributor, with which a failure is repaired in the
/// times that the documentation promises (docs/operating/maintenance.md, "How many buckets"). It is not enforced.
inline constexpr std::uint64_t kBucketsPerNodeMax = 100'000;
/// Number of buckets above which status and health say that a node comes near the largest number.
inline constexpr std::uint64_t kBucketsPerNodeWarn = kBucketsPerNodeMax / 5 * 4;

}  // namespace fjord
