#pragma once

#include <optional>

#include "bucket_database.h"
#include "fjord/rpc/operator_messages.h"

namespace fjord::distributor {

/// Returns what is wrong with the bucket, for operators; empty if it is in order or about to be created.
std::optional<rpc::UnhealthyBucket> problem_of(const BucketEntry& entry);

/// Returns the unhealthy buckets that the request asks for.
rpc::ListUnhealthyBucketsReply list_unhealthy(BucketDatabase& buckets, const rpc::ListUnhealthyBuckets& request);

}  // namespace fjord::distributor
