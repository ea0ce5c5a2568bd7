#include "maintenance/merge_failures.h"

#include <utility>

namespace fjord::distributor {

void MergeFailures::note(BucketId bucket, std::string why) { buckets_[bucket.raw()].why = std::move(why); }

void MergeFailures::failed(BucketId bucket, MonotonicTime now) {
  Failure& failure = buckets_[bucket.raw()];
  if (failure.in_a_row == 0) failure.first = now;
  ++failure.in_a_row;
  failure.last = now;
}

MergeFailures::Summary MergeFailures::summary(BucketDatabase& database, MonotonicTime now) {
  Summary summary;
  MonotonicTime newest{};
  for (auto at = buckets_.begin(); at != buckets_.end();) {
    const BucketId bucket(at->first);
    const Failure& failure = at->second;
    if (database.find(bucket) == nullptr) {
      at = buckets_.erase(at);
      continue;
    }
    ++at;
    if (failure.in_a_row < kInARow || now - failure.first < kForAtLeast) continue;
    ++summary.buckets;
    if (!summary.newest.empty() && failure.last <= newest) continue;
    newest = failure.last;
    summary.newest = bucket.to_string() + ": " + (failure.why.empty() ? "writes come between" : failure.why);
  }
  return summary;
}

}  // namespace fjord::distributor
