#pragma once

#include <cstddef>

#include "bucket_database.h"
#include "fjord/rpc/cluster_snapshot.h"

namespace fjord::distributor {

/// Numbers of buckets for polls and metrics.
struct BucketCounts {
  std::size_t out_of_sync = 0;       ///< They wait for a merge or for reports of storage nodes.
  std::size_t unavailable = 0;       ///< They cannot be served.
  std::size_t damaged = 0;           ///< A replica has lost data.
  std::size_t under_replicated = 0;  ///< They are served with fewer intact members than there should be.
};

/// Counts the known buckets. `snapshot` may be null. One pass over the database.
BucketCounts count_buckets(BucketDatabase& buckets, const rpc::ClusterSnapshot* snapshot);

}  // namespace fjord::distributor
