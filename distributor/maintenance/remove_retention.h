#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "context.h"
#include "fjord/common/tunable.h"

namespace fjord::distributor {

/// Has removed entries dropped that are older than the settings say, on all replicas of a bucket at once: only in
/// buckets whose replicas are in sync where they belong. The bucket is paused until its writes have ended; then a new
/// replica set says up to which time entries are dropped (docs/design/0013). Confined to the executor.
class RemoveRetention {
 public:
  struct Hooks {
    std::function<void(BucketId)> install;       ///< Writes the bucket's set down, and puts it in service.
    std::function<void(BucketId)> bucket_ready;  ///< Operations that waited for the bucket may go on.
    /// No write to the bucket with a timestamp up to this is under way, or will ever be.
    std::function<std::uint64_t(const BucketEntry&)> stable_us;
  };
  RemoveRetention(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// There is a new cluster state: nothing is under way any more.
  void forget();
  /// Adds what is to be reported.
  void ask(rpc::GetBucketInfo& question) const;
  /// A storage node has answered such a question.
  void note_node(std::uint16_t node, const rpc::GetBucketInfoReply& reply);
  void note(const BucketEntry& entry, const rpc::BucketReport& report);
  /// The last write under way has ended in a bucket that this has paused.
  void drained(BucketEntry& entry);
  /// What a replica set that is sent for the bucket says.
  void add_times(rpc::BucketReplicaSet& set) const;
  /// The set is in force on all members.
  void installed(BucketEntry& entry);

 private:
  struct Times {
    std::uint64_t removes_us = 0;
    std::uint64_t tokens_us = 0;
    std::uint64_t surplus_tokens_us = 0;
  };
  std::uint64_t now_us() const;
  bool all_nodes_can() const;
  void start_some();
  void start(BucketEntry& entry);
  void give_order(BucketEntry& entry);
  void abandon(BucketEntry& entry);

  Context& context_;
  Hooks hooks_;
  const Tunable& removes_ms_;
  const Tunable& tokens_ms_;
  const Tunable& tokens_max_;
  Counter& orders_;
  Counter& abandoned_;
  Gauge& waiting_;
  std::set<std::uint16_t> can_forget_;        // Nodes, as they have said in this cluster state.
  std::deque<BucketTicket> queue_;            // Buckets that are to be told.
  std::map<std::uint64_t, Times> queued_;     // By raw bucket id: what is in the queue.
  std::map<std::uint64_t, Times> under_way_;  // Being told, or waiting for writes to end.
};

}  // namespace fjord::distributor
