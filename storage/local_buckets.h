#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "bucket_index.h"
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

  /// Begins the answer to a question: returns the buckets that report() has to look at, in pieces of any size. Errors:
  /// NotReady, WrongDistribution for another cluster state than that of the request; those of the engine.
  Result<std::vector<BucketId>> asked_buckets(const rpc::GetBucketInfo& request);
  /// Adds the reports of some of these buckets to `reports`. Buckets that are gone meanwhile are left out. Errors:
  /// WrongDistribution if there is another cluster state by now.
  Status report(const rpc::GetBucketInfo& request, std::span<const BucketId> buckets,
                std::vector<rpc::BucketReport>& reports);
  /// Ends the answer, after the last call of report().
  void end_reports(const rpc::GetBucketInfo& request);
  /// Creates an empty bucket, unless it is here. Errors: those of the engine.
  Status create(BucketId bucket);
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
  /// Errors: those of the engine.
  Status split_in_two(BucketId bucket);
  /// Returns the buckets of `asked` that exist here. For each of the others it returns the existing buckets that
  /// contain it or that it contains.
  std::vector<BucketId> present_parts(const std::vector<BucketId>& asked);
  /// Errors: NotReady, WrongDistribution if the cluster state in use is not that of the request.
  Status check_version(const rpc::GetBucketInfo& request) const;
  BucketIndex& index();
  Status note_change(Status done, std::initializer_list<BucketId> before, std::initializer_list<BucketId> after);
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
  std::optional<BucketIndex> index_;  ///< All buckets of the stripe; made when it is first needed.
  unsigned split_to_ = 0;             ///< All buckets here use at least this many bits.
};

}  // namespace fjord::storage
