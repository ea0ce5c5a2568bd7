#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "damaged_buckets.h"
#include "fjord/rpc/messages.h"
#include "remove_entry_counter.h"
#include "stripe_context.h"

namespace fjord::storage {

/// Creates, deletes, splits and joins the buckets of a stripe as their owners ask, keeps their replica
/// sets, and reports about them. Confined to the stripe's executor.
class LocalBuckets {
 public:
  LocalBuckets(StripeContext& context, DamagedBuckets& damaged, RemoveEntryCounter& removed)
      : context_(context), damaged_(damaged), removed_(removed) {}

  Result<std::vector<rpc::BucketReport>> bucket_info(const rpc::GetBucketInfo& request);
  Status set_replica_set(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry);
  /// Returns the bucket's current content; an empty BucketInfo if the bucket is not on this node.
  BucketInfo content_of(BucketId bucket);
  Status delete_bucket(const rpc::DeleteBuckets& request, BucketId bucket);
  /// Deletes the bucket and remembers its epoch, so that late messages of the same cluster state, sent while the
  /// replica was still a member, do not create it again.
  Status delete_replica(std::uint64_t state_version, BucketId bucket);
  rpc::SplitBucketReply split(const rpc::SplitBucket& request);
  rpc::JoinBucketsReply join(const rpc::JoinBuckets& request);

  struct Totals {
    std::uint64_t buckets = 0;
    std::uint64_t documents = 0;
    std::uint64_t bytes = 0;
    std::uint64_t damaged = 0;  ///< Number of damaged buckets.
    unsigned min_bits = 0;      ///< The smallest number of bits that a bucket here uses; 0 if there is no bucket.
  };
  Totals totals();

 private:
  /// Splits all buckets that use fewer than `bits` bits. Errors: those of the engine.
  Status split_to(unsigned bits);
  /// Returns the buckets of `asked` that exist here. For each of the others it returns the existing buckets that
  /// contain it or that it contains.
  std::vector<BucketId> present_parts(const std::vector<BucketId>& asked) const;
  /// Returns true if another bucket exists here that contains `bucket` or that `bucket` contains.
  bool overlaps_another(BucketId bucket) const;
  rpc::BucketReport report_of(BucketId bucket);
  void add_forgotten(rpc::BucketReport& report) const;
  /// Drops remove entries up to the times in `entry`. The owner sends these times only when all members hold the same
  /// content.
  void forget(const rpc::BucketReplicaSet& entry);
  /// Returns true for a delayed or duplicate message that was sent before the bucket was deleted.
  bool is_deleted_since(const rpc::SetReplicaSets& request, const rpc::BucketReplicaSet& entry) const;

  StripeContext& context_;
  DamagedBuckets& damaged_;
  RemoveEntryCounter& removed_;
  /// Buckets deleted under cluster state `deleted_version_`, with their epochs at that time. Deletions under older
  /// states are not remembered, because messages of older states are refused anyway.
  std::map<BucketId, std::uint64_t> deleted_;
  std::uint64_t deleted_version_ = 0;
  unsigned split_to_ = 0;  ///< All buckets here use at least this many bits.
};

}  // namespace fjord::storage
