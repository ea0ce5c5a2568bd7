#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fjord/common/executor.h"
#include "fjord/document/bucket_id.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

/// The cost of searches that is due to the keywords of one bucket.
struct SearchLoad {
  BucketId bucket;
  std::uint64_t ns = 0;
  std::uint64_t candidates = 0;  ///< Number of keywords that matched.
  std::uint64_t pages = 0;       ///< Number of pages of index files that were read.
};

/// Gives services that run beside the storage node, such as visitors, access to its buckets.
/// Threading: callable from any thread. Lifetime: the storage node outlives every service that holds this.
class BucketAccess {
 public:
  virtual ~BucketAccess() = default;
  /// Returns the number of the stripe that owns `bucket`.
  virtual std::size_t stripe_of(BucketId bucket) const = 0;
  /// Runs `task` on the executor of the stripe that owns `bucket`, with the provider of that stripe. An iterator made
  /// there is used and destroyed there.
  virtual void on_stripe(BucketId bucket, UniqueFunction<void(PersistenceProvider&)> task) = 0;
  /// Adds to the loads of the buckets, if loads are counted. To be called in a task of on_stripe() for their stripe.
  virtual void count_searches(std::span<const SearchLoad> /*loads*/) {}
};

}  // namespace fjord::spi
