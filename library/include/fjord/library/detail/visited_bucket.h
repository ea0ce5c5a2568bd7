#pragma once

#include <compare>
#include <cstddef>

#include "fjord/document/bucket_id.h"

namespace fjord {

/// A bucket as one slice sees it; adjacent slices share the bucket at their border.
struct VisitedBucket {
  std::size_t slice = 0;
  BucketId bucket;
  friend auto operator<=>(const VisitedBucket&, const VisitedBucket&) = default;
};

}  // namespace fjord
