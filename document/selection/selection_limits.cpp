#include "selection_limits.h"

#include <algorithm>
#include <iterator>

namespace fjord::selection {
namespace {

bool is_before(BucketId a, BucketId b) { return a.sort_key() < b.sort_key(); }

}  // namespace

TypeSet TypeSet::of(std::vector<std::uint32_t> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  TypeSet set;
  set.is_all_ = false;
  set.ids_ = std::move(ids);
  return set;
}

TypeSet TypeSet::unite(const std::vector<TypeSet>& sets) {
  std::vector<std::uint32_t> ids;
  for (const TypeSet& set : sets) {
    if (set.is_all()) return all();
    ids.insert(ids.end(), set.ids_.begin(), set.ids_.end());
  }
  return of(std::move(ids));
}

TypeSet TypeSet::intersect(const TypeSet& other) const {
  if (is_all_) return other;
  if (other.is_all_) return *this;
  std::vector<std::uint32_t> ids;
  std::set_intersection(ids_.begin(), ids_.end(), other.ids_.begin(), other.ids_.end(), std::back_inserter(ids));
  return of(std::move(ids));
}

BucketSet BucketSet::of(std::vector<BucketId> buckets) {
  std::sort(buckets.begin(), buckets.end(), is_before);
  BucketSet set;
  set.is_all_ = false;
  // A bucket's descendants directly follow it.
  for (const BucketId bucket : buckets) {
    if (set.buckets_.empty() || !set.buckets_.back().contains(bucket)) set.buckets_.push_back(bucket);
  }
  return set;
}

BucketSet BucketSet::unite(const std::vector<BucketSet>& sets) {
  std::vector<BucketId> buckets;
  for (const BucketSet& set : sets) {
    if (set.is_all()) return all();
    buckets.insert(buckets.end(), set.buckets_.begin(), set.buckets_.end());
  }
  return of(std::move(buckets));
}

BucketSet BucketSet::intersect(const BucketSet& other) const {
  if (is_all_) return other;
  if (other.is_all_) return *this;
  std::vector<BucketId> buckets;
  const auto inside = [](const BucketSet& set) { return [&set](BucketId bucket) { return set.contains(bucket); }; };
  std::copy_if(buckets_.begin(), buckets_.end(), std::back_inserter(buckets), inside(other));
  std::copy_if(other.buckets_.begin(), other.buckets_.end(), std::back_inserter(buckets), inside(*this));
  return of(std::move(buckets));
}

bool BucketSet::contains(BucketId bucket) const {
  if (is_all_) return true;
  const auto after = std::upper_bound(buckets_.begin(), buckets_.end(), bucket, is_before);
  return after != buckets_.begin() && std::prev(after)->contains(bucket);
}

bool BucketSet::overlaps(BucketId bucket) const {
  if (contains(bucket)) return true;
  const auto after = std::upper_bound(buckets_.begin(), buckets_.end(), bucket, is_before);
  return after != buckets_.end() && bucket.contains(*after);
}

}  // namespace fjord::selection
