#pragma once

#include <cstddef>
#include <span>

#include "fjord/common/result.h"
#include "fjord/document/docblock.h"
#include "fjord/storage/spi/persistence_provider.h"
#include "fjord/visitors/bucket_space.h"

namespace fjord::visitors {

/// A bucket's data on one storage node. Lifetime: one call.
struct BucketOnNode {
  spi::PersistenceProvider& provider;
  std::span<const BucketId> parts;  ///< Local buckets that hold its documents: itself, its parts after a split, or the
                                    ///< bucket it was joined into.
  const PositionRange& wanted;      ///< Positions of the bucket; documents elsewhere belong to other buckets.
  const spi::IterateOptions& options;
};

/// Reads a bucket instead of an iterator, for a visitor that keeps state about its documents from an earlier visit.
///
/// Threading: next() and close() run on the stripe that owns the bucket. A visitor queries its own reader on the
/// visitor's executor after all documents were read. Lifetime: held by shared_ptr.
class BucketReader {
 public:
  virtual ~BucketReader() = default;
  /// Appends documents to `block` until it has `bytes_max` bytes. Returns false after the last document. Errors: those
  /// of the provider, which end the bucket.
  virtual Result<bool> next(const BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) = 0;
  /// Called on the stripe after the last next(). Releases everything that belongs to the provider.
  virtual void close() = 0;
};

}  // namespace fjord::visitors
