#pragma once

#include <cstdint>

#include "fjord/cluster/replica_set.h"

namespace fjord::distributor {

/// How the entries of a bucket lie in it.
enum class BucketShape {
  Divisible,  ///< Both halves have some.
  OneSided,   ///< One half has all: many documents of one location, most likely.
  OneGroup,   ///< They belong to one document and will never be parted.
};

/// Above which a bucket is large.
struct SizeLimits {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

bool is_large(const BucketInfo& info, const SizeLimits& limits);

/// So large that it is split although the next splits leave everything in one half: the documents of a location are
/// parted by their hashes once a bucket uses all bits of the location.
bool is_huge(const BucketInfo& info, const SizeLimits& limits);

/// Whether to split a bucket that holds so much. Pure.
bool should_split(BucketShape shape, const BucketInfo& info, const SizeLimits& limits);

/// It holds a fifth more or less than `before`: what was found out then has to be found out anew.
bool has_changed(const BucketInfo& before, const BucketInfo& now);

}  // namespace fjord::distributor
