#pragma once

#include <cstddef>
#include <span>

#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord::visitors {

/// A bucket as it lies on a storage node. Lifetime: a call.
struct BucketOnNode {
  spi::PersistenceProvider& provider;
  std::span<const BucketId> parts;  ///< All that have documents of it: it, what it was split into or is now a part of.
  const PositionRange& wanted;      ///< Documents elsewhere are none of the bucket's.
  const spi::IterateOptions& options;
};

/// Reads a bucket in the place of an iterator, for a visitor that knows some of its documents from before.
///
/// Threading: next() on the stripe that owns the bucket; what a visitor asks of its own reader, on the visitor's
/// executor once all was read. Lifetime: held by shared_ptr.
class BucketReader {
 public:
  virtual ~BucketReader() = default;
  /// Appends documents to `block` until it has `bytes_max`; false once all were given. Errors: those of the provider,
  /// which end the bucket.
  virtual Result<bool> next(const BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) = 0;
  /// On the stripe: next() is not called any more. What belongs to the provider is given back.
  virtual void close() = 0;
};

}  // namespace fjord::visitors
