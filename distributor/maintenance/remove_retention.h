#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>

#include "context.h"
#include "fjord/common/tunable.h"

namespace fjord::distributor {

/// Has replicas drop removed entries and tokens that are older than the settings say, on all replicas of a bucket at
/// once, and only if these are in sync where they belong. The bucket is paused until its writes have ended. Then a new
/// replica set says up to which time entries are dropped (docs/design/0013). Confined to the executor.
class RemoveRetention {
 public:
  struct Hooks {
    std::function<void(BucketId)> install;       ///< Installs the bucket's set and puts it in service.
    std::function<void(BucketId)> bucket_ready;  ///< Operations that waited for the bucket may go on.
    /// Timestamp up to which no write to the bucket is in flight or ever will be.
    std::function<std::uint64_t(const BucketEntry&)> stable_us;
  };
  RemoveRetention(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// Drops all work, because there is a new cluster state.
  void forget();
  /// Adds to the question how old entries and tokens may be, so that buckets with older ones are reported.
  void ask(rpc::GetBucketInfo& question) const;
  /// Notes that a storage node has answered such a question.
  void note_node(std::uint16_t node, const rpc::GetBucketInfoReply& reply);
  void note(const BucketEntry& entry, const rpc::BucketReport& report);
  /// The last write in flight to a bucket that this class has paused has ended.
  void drained(BucketEntry& entry);
  /// Adds to the bucket's replica set, which is about to be sent, up to which times entries are dropped.
  void add_times(rpc::BucketReplicaSet& set) const;
  /// The set is installed on all members.
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
  std::set<std::uint16_t> can_forget_;        // Nodes that can, by their answers in this cluster state.
  std::deque<BucketTicket> queue_;            // Buckets whose replicas are to drop entries.
  std::map<std::uint64_t, Times> queued_;     // By raw bucket id, for the buckets in the queue.
  std::map<std::uint64_t, Times> under_way_;  // By raw bucket id: being ordered, or waiting for writes to end.
};

}  // namespace fjord::distributor
