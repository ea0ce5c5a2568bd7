#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "context.h"
#include "fjord/common/tunable.h"

namespace fjord::distributor {

/// Makes the replicas of a bucket drop remove entries and tokens that are older than the settings allow. All replicas
/// do this at once, and only if they are in sync and on their ideal nodes. The bucket is paused until its writes have
/// ended. Then a new replica set says up to which time entries are dropped (docs/design/0013). Confined to the
/// executor.
class RemoveRetention {
 public:
  struct Hooks {
    /// Stores the entry's replica set on the storage nodes, and then puts the bucket in service again.
    std::function<void(BucketEntry&, Installation)> install;
    std::function<void(BucketId)> bucket_ready;  ///< Called when operations that waited for the bucket may continue.
    /// Returns the timestamp up to which no write to the bucket is in flight or ever will be.
    std::function<std::uint64_t(const BucketEntry&)> stable_us;
  };
  RemoveRetention(Context& context, TunableRegistry& tunables, Hooks hooks);

  /// Drops all work, because there is a new cluster state.
  void forget();
  /// Adds to the question the ages above which buckets with old entries or tokens are reported.
  void ask(rpc::GetBucketInfo& question) const;
  /// Notes a bucket that a storage node has reported. The caller then calls go_on().
  void note(const BucketEntry& entry, const rpc::BucketReport& report);
  /// Gives the orders to drop entries that may be given now.
  void go_on();
  /// Called when the last write in flight to a bucket in activity::Forgetting has ended.
  void drained(BucketEntry& entry);
  /// Must be called when a replica set that says what to drop is in force.
  void order_done();

 private:
  std::uint64_t now_us() const;
  bool all_nodes_can() const;
  void start_some();
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
  std::deque<BucketTicket> queue_;  // Buckets whose replicas are to drop entries.
  /// For each bucket in the queue, by raw id: timestamp of the newest token that exceeds the permitted number of
  /// tokens.
  std::map<std::uint64_t, std::uint64_t> surplus_tokens_us_;
  std::size_t under_way_ = 0;  // Number of buckets in activity::Forgetting, or whose new set is being installed.
};

}  // namespace fjord::distributor
