#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bucket_database.h"
#include "fjord/rpc/operator_messages.h"

namespace fjord::distributor {

/// Returns true if the bucket is served with fewer current replicas than `redundancy`, so that fewer losses of nodes
/// than promised take its documents. This is the state "too few replicas" of status, metrics and lists.
bool has_too_few_replicas(const BucketEntry& entry, unsigned redundancy);

/// Returns what is wrong with the bucket, for operators; empty if it is in order or about to be created. The kind of a
/// bucket with too few replicas is OutOfSync, as earlier versions have no other; its members say that it has too few.
std::optional<rpc::UnhealthyBucket> problem_of(const BucketEntry& entry, unsigned redundancy);

/// Returns the unhealthy buckets that the request asks for: those of the database, and those that no node has reported
/// and that may exist (`unreported`, with the reason).
rpc::ListUnhealthyBucketsReply list_unhealthy(BucketDatabase& buckets, std::vector<BucketId> unreported,
                                              const std::string& why_unreported, unsigned redundancy,
                                              const rpc::ListUnhealthyBuckets& request);

}  // namespace fjord::distributor
