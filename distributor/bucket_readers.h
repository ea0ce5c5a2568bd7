#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "context.h"
#include "maintenance/bucket_maintainer.h"
#include "operations/node_latencies.h"
#include "operations/operation_engine.h"

namespace fjord::distributor {

/// Timestamp up to which no write to the bucket is in flight or ever will be. `oldest` is
/// OperationEngine::oldest_under_way().
std::uint64_t stable_us(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest);

/// Says from which storage node each bucket can be read, for visitors and subscribers. Confined to the executor.
class BucketReaders {
 public:
  BucketReaders(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies, OperationEngine& operations)
      : context_(context), maintainer_(maintainer), latencies_(latencies), operations_(operations) {}

  /// Names a node for each bucket, from which a client reads alone. Without a lease, all members have to confirm the
  /// cluster state first.
  void answer(const rpc::GetBucketNodes& request, rpc::Responder respond);

 private:
  rpc::GetBucketNodesReply bucket_nodes(const rpc::GetBucketNodes& request);
  /// Calls `done` with true if all these storage nodes are still in this distributor's cluster state.
  void confirm_state(const std::set<std::uint16_t>& nodes, UniqueFunction<void(bool)> done);
  rpc::BucketNode node_of(BucketId bucket, const rpc::GetBucketNodes& request);
  /// A node from which all of `parts`, which make up `bucket`, can be read.
  rpc::BucketNode node_of(BucketId bucket, const std::vector<BucketId>& parts, const rpc::GetBucketNodes& request);
  /// Creates the parts of `bucket` that do not exist: they were never written to since there are more distribution
  /// bits, and a node that has only some parts could not tell. True if a part was missing.
  bool create_missing(BucketId bucket);
  /// The node from which changes of a bucket can be read, and the timestamp up to which they can: before its oldest
  /// write in flight, and not while a merge may bring an older one (docs/design/0008).
  rpc::BucketNode node_for_changes(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest);

  Context& context_;
  BucketMaintainer& maintainer_;
  NodeLatencies& latencies_;
  OperationEngine& operations_;
};

}  // namespace fjord::distributor
