#pragma once

#include <cstdint>

#include "fjord/cluster/replica_set.h"

namespace fjord::distributor {

/// How the entries of a bucket are spread over its halves.
enum class BucketShape {
  Divisible,  ///< Both halves have entries.
  OneSided,   ///< One half has all entries: most likely many documents of one location.
  OneGroup,   ///< All entries belong to one document and can never be separated.
};

/// Limits above which a bucket is large.
struct SizeLimits {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

bool is_large(const BucketInfo& info, const SizeLimits& limits);

/// Returns true if the bucket is so large that it is split although the next splits leave all entries in one half. Once
/// a bucket uses all bits of the location, the hashes of the documents separate them.
bool is_huge(const BucketInfo& info, const SizeLimits& limits);

/// Returns true if a bucket of this shape and size should be split. Pure.
bool should_split(BucketShape shape, const BucketInfo& info, const SizeLimits& limits);

/// Returns true if `now` is larger or smaller than `before` by a fifth, so that the bucket has to be examined again.
bool has_changed(const BucketInfo& before, const BucketInfo& now);

}  // namespace fjord::distributor
