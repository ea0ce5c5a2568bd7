#pragma once

#include <cstddef>

#include "fjord/common/executor.h"
#include "fjord/storage/spi/persistence_provider.h"

namespace fjord::spi {

/// Gives services that run beside the storage node, such as visitors, access to its buckets.
/// Threading: callable from any thread. Lifetime: the storage node outlives every service that holds this.
class BucketAccess {
 public:
  virtual ~BucketAccess() = default;
  /// The number of the stripe that owns `bucket`.
  virtual std::size_t stripe_of(BucketId bucket) const = 0;
  /// Runs `task` on the executor of the stripe that owns `bucket`, with the provider of that stripe. An iterator made
  /// there is used and destroyed there.
  virtual void on_stripe(BucketId bucket, UniqueFunction<void(PersistenceProvider&)> task) = 0;
};

}  // namespace fjord::spi
