#pragma once

#include <optional>

#include "bucket_database.h"
#include "fjord/rpc/messages.h"

namespace fjord::distributor {

/// What an operator should know of the bucket; empty: it is as it should be, or about to be made.
std::optional<rpc::BucketTrouble> trouble_of(const BucketEntry& entry);

/// Those of `buckets` that the request asks for.
rpc::ListTroublesReply list_troubles(BucketDatabase& buckets, const rpc::ListTroubles& request);

}  // namespace fjord::distributor
