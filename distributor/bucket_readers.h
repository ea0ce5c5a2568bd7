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

/// Returns the timestamp up to which no write to the bucket is in flight or will ever be made. `oldest` is the result
/// of OperationEngine::oldest_under_way().
std::uint64_t stable_us(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest);

/// Tells visitors and subscribers from which storage node each bucket can be read. Confined to the executor.
class BucketReaders {
 public:
  BucketReaders(Context& context, BucketMaintainer& maintainer, NodeLatencies& latencies, OperationEngine& operations)
      : context_(context), maintainer_(maintainer), latencies_(latencies), operations_(operations) {}

  /// Answers with a node for each bucket; a client then reads from this node alone. Without a lease, all members first
  /// have to confirm the cluster state.
  void answer(const rpc::GetBucketNodes& request, rpc::Responder respond);

 private:
  rpc::GetBucketNodesReply bucket_nodes(const rpc::GetBucketNodes& request);
  /// Calls `done` with true if all these storage nodes are still in this distributor's cluster state.
  void confirm_state(const std::set<std::uint16_t>& nodes, UniqueFunction<void(bool)> done);
  /// Creates the parts of the bucket that do not exist: a storage node cannot know that it lacks nothing.
  rpc::BucketNode node_of(BucketId bucket, const rpc::GetBucketNodes& request);
  /// Returns a node from which all of `parts`, which together are `bucket`, can be read.
  rpc::BucketNode node_of(BucketId bucket, const std::vector<BucketId>& parts, const rpc::GetBucketNodes& request);
  /// Returns the node from which changes of a bucket can be read, and the timestamp up to which they can be read. It
  /// lies before the oldest write in flight, and no merge may still bring older writes (docs/design/0008).
  rpc::BucketNode node_for_changes(const BucketEntry& entry, const std::map<std::uint64_t, std::uint64_t>& oldest);

  Context& context_;
  BucketMaintainer& maintainer_;
  NodeLatencies& latencies_;
  OperationEngine& operations_;
};

}  // namespace fjord::distributor
