#include "maintenance/bucket_counts.h"

#include "maintenance/need.h"

namespace fjord::distributor {

BucketCounts count_buckets(BucketDatabase& buckets, const rpc::ClusterSnapshot* snapshot) {
  BucketCounts counts;
  const std::size_t wanted = snapshot == nullptr ? 0 : wanted_replicas(*snapshot);
  for (const auto& [key, entry] : buckets) {
    const bool is_unknown = entry.is<activity::Collecting>();
    const bool is_unavailable = is_unknown || entry.is<activity::Unavailable>();
    counts.out_of_sync += is_unknown || entry.wants_merge() ? 1 : 0;
    counts.unavailable += is_unavailable ? 1 : 0;
    counts.damaged += entry.damaged.empty() ? 0 : 1;
    counts.under_replicated += !is_unavailable && entry.intact().size() < wanted ? 1 : 0;
  }
  return counts;
}

}  // namespace fjord::distributor
