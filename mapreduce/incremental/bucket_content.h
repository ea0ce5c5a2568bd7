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

/// The content of a bucket.
struct BucketContent {
  ContentVersion version;
  Timestamp newest;  ///< No entry is newer.
};

/// Returns the present content of the bucket. Errors: NotFound.
Result<BucketContent> content_of(const visitors::BucketOnNode& bucket);

/// Returns true if more than a quarter of a bucket's entries have changed: it is faster then to read all of them in
/// sequence than the changed ones one by one.
inline bool are_too_many(std::size_t changes, std::uint64_t entries) {
  constexpr std::uint64_t kChangedPartMax = 4;
  return changes * kChangedPartMax > entries;
}

/// Calls `f(entry)` for each entry of the bucket, in any order. `f` must not call the provider. Errors: NotFound.
template <typename F>
Status for_each_entry(const visitors::BucketOnNode& bucket, F f) {
  for (const BucketId part : bucket.parts) {
    const bool whole = is_whole(bucket, part);
    FJORD_TRY(bucket.provider.for_each_entry(part, [&](const spi::EntryMeta& entry) {
      if (whole || bucket.wanted.contains(visitors::position_of(entry.gid))) f(entry);
    }));
  }
  return Status::ok();
}

/// As for_each_entry(), for the entries newer than `after`.
template <typename F>
Status for_each_newer(const visitors::BucketOnNode& bucket, Timestamp after, F f) {
  for (const BucketId part : bucket.parts) {
    const bool whole = is_whole(bucket, part);
    FJORD_TRY(bucket.provider.for_each_newer(part, after, [&](const spi::EntryMeta& entry) {
      if (whole || bucket.wanted.contains(visitors::position_of(entry.gid))) f(entry);
    }));
  }
  return Status::ok();
}

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
