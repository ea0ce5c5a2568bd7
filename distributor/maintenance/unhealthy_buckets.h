#pragma once

#include <optional>

#include "bucket_database.h"
#include "fjord/rpc/operator_messages.h"

namespace fjord::distributor {

/// The bucket's trouble, for operators. Empty if the bucket is in order or about to be created.
std::optional<rpc::BucketTrouble> problem_of(const BucketEntry& entry);

/// The buckets in trouble that the request asks for.
rpc::ListTroublesReply list_unhealthy(BucketDatabase& buckets, const rpc::ListTroubles& request);

}  // namespace fjord::distributor
