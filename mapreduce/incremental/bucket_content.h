#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fjord/visitors/bucket_reader.h"
#include "partials.h"

/// What readers of buckets ask about a bucket's content. On the stripe that owns the bucket.
namespace fjord::mapreduce {

/// Returns true if all documents of the part belong to the bucket.
bool is_whole(const visitors::BucketOnNode& bucket, BucketId part);

/// Returns the version of the bucket's present content. Errors: NotFound.
Result<ContentVersion> version_of(const visitors::BucketOnNode& bucket);

/// Returns true if a part of the bucket has lost entries. Errors: NotFound.
Result<bool> is_damaged(const visitors::BucketOnNode& bucket);

/// Reads all documents of a bucket.
class WholeBucket {
 public:
  /// Appends documents to `block` until it has `bytes_max` bytes. Returns false after the last document. Errors: those
  /// of the provider.
  Result<bool> read(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max);
  /// Releases what belongs to the provider.
  void close() { iterator_.reset(); }
  /// Number of documents read so far.
  std::uint64_t given() const { return given_; }

 private:
  std::size_t part_ = 0;
  std::unique_ptr<spi::DocumentIterator> iterator_;
  std::uint64_t given_ = 0;
};

}  // namespace fjord::mapreduce
