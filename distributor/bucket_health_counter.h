#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "context.h"
#include "maintenance/merge_failures.h"

namespace fjord::distributor {

/// Counts this distributor's buckets by their health, for polls and metrics. Confined to the executor.
class BucketHealthCounter {
 public:
  explicit BucketHealthCounter(Context& context);

  /// Must be called when the context has another snapshot.
  void state_changed();
  /// Sets the numbers of buckets in the reply to a poll, and the metrics. Goes through the database once. `failing`:
  /// the buckets whose merges fail repeatedly.
  void count(rpc::PollReply& reply, MergeFailures::Summary failing);

  /// For this time a bucket counts as collected, not as unavailable, while storage nodes are asked for it. An operation
  /// that waits so short a time is not noticed.
  static constexpr Duration kCollectingMax = seconds(2);

 private:
  /// Counts the buckets in the database.
  void count_known(rpc::PollReply& reply) const;
  /// Counts the owned buckets that the database lacks while it is not complete.
  void count_unknown(rpc::PollReply& reply);
  const std::vector<BucketId>& owned_buckets();
  std::size_t unplaced_buckets() const;
  std::size_t unreported_buckets();
  bool is_nothing_placed() const;
  /// Returns true if the distributor began less than kCollectingMax ago to ask storage nodes.
  bool is_asked_since_shortly() const {
    return !context_.ready && context_.clock.now() - context_.collecting_since < kCollectingMax;
  }

  Context& context_;
  bool none_is_placed_ = false;  ///< True if no storage node of the state in use takes buckets.
  /// The owned buckets; empty until they are needed under the state in use.
  std::optional<std::vector<BucketId>> owned_;
  Gauge& buckets_;
  Gauge& out_of_sync_;
  Gauge& collecting_;
  Gauge& unavailable_;
  Gauge& damaged_;
  Gauge& failing_;
  Gauge& unplaced_;
  Gauge& unreported_;
  Gauge& under_replicated_;
};

}  // namespace fjord::distributor
