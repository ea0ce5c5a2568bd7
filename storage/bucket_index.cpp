#include "bucket_index.h"

namespace fjord::storage {

void BucketIndex::add(BucketId bucket) {
  if (buckets_.emplace(bucket.sort_key(), bucket).second) ++with_bits_[bucket.used_bits()];
}

void BucketIndex::remove(BucketId bucket) {
  if (buckets_.erase(bucket.sort_key()) != 0) --with_bits_[bucket.used_bits()];
}

std::vector<BucketId> BucketIndex::overlapping(BucketId bucket) const {
  std::vector<BucketId> found;
  for (unsigned bits = 0; bits < bucket.used_bits(); ++bits) {
    if (with_bits_[bits] == 0) continue;
    const BucketId wider = bucket.with_used_bits(bits);
    if (contains(wider)) found.push_back(wider);
  }
  for (auto it = buckets_.upper_bound(bucket.sort_key()); it != buckets_.end() && bucket.contains(it->second); ++it) {
    found.push_back(it->second);
  }
  return found;
}

}  // namespace fjord::storage
