#pragma once

#include <initializer_list>
#include <set>

#include "fjord/rpc/messages.h"
#include "stripe_context.h"

namespace fjord::storage {

/// The buckets of a stripe that have lost data and are not marked as repaired. The engine remembers them across
/// restarts. Confined to the stripe's executor.
class DamagedBuckets {
 public:
  explicit DamagedBuckets(StripeContext& context) : context_(context) {}

  /// Takes from the engine the buckets that were newly found damaged.
  void take_new();
  /// Returns true if the bucket is damaged. Includes damage that the last call of the engine has found.
  bool contains(BucketId bucket);
  /// Returns the number of damaged buckets, as of the last take_new().
  std::size_t size() const { return buckets_.size(); }
  /// Marks the buckets of `after` as damaged if one of `before`, which they replace, was damaged.
  void inherit(std::initializer_list<BucketId> before, std::initializer_list<BucketId> after);
  /// Ends the bucket's damaged state if it holds the same content as an intact replica. Otherwise it stays damaged.
  /// Errors: NotReady while the engine rewrites the bucket's files; the call has to be repeated.
  Status mark_if_repaired(const rpc::BucketReplicaSet& entry);
  /// Forgets a bucket that was deleted.
  void forget(BucketId bucket);

 private:
  StripeContext& context_;
  std::set<BucketId> buckets_;
};

}  // namespace fjord::storage
