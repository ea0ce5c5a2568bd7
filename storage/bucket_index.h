#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "fjord/document/bucket_id.h"

namespace fjord::storage {

/// The buckets of a stripe in the order of the bucket tree, so that the buckets around one are found without a look at
/// all others. A plain value; the owner adds and removes.
class BucketIndex {
 public:
  void add(BucketId bucket);
  void remove(BucketId bucket);
  bool contains(BucketId bucket) const { return buckets_.contains(bucket.sort_key()); }
  std::size_t size() const { return buckets_.size(); }
  /// Returns the buckets that contain `bucket` and those that `bucket` contains, without itself.
  std::vector<BucketId> overlapping(BucketId bucket) const;

 private:
  std::map<std::uint64_t, BucketId> buckets_;  ///< By sort_key(): a bucket comes directly before those it contains.
  std::array<std::size_t, BucketId::kUsedBitsMax + 1> with_bits_{};  ///< By number of used bits: the number of buckets.
};

}  // namespace fjord::storage
