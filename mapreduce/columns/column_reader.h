#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "columns/column_cache.h"
#include "columns/column_content.h"
#include "fjord/visitors/bucket_reader.h"
#include "incremental/bucket_content.h"

namespace fjord::mapreduce {

/// The columns that one task looks for. Threading: any thread.
class ColumnLookup {
 public:
  /// `query` has no selection yet: a task learns it from the first bucket that is read. `cache` outlives it.
  ColumnLookup(ColumnCache& cache, ColumnQuery query) : cache_(cache), query_(std::move(query)) {}

  /// Returns true if columns can stand for the documents that `options` select. If a selection depends on the time of
  /// the visit, or old versions are left out, they cannot.
  bool is_possible(const spi::IterateOptions& options);
  std::optional<FoundColumns> find(BucketId bucket, const ContentVersion& version) {
    return cache_.find(query_, bucket, version);
  }
  /// As ColumnCache::find_former().
  std::optional<FoundColumns> find_former(BucketId bucket) { return cache_.find_former(query_, bucket); }
  /// As ColumnCache::replace().
  void replace(BucketId bucket, const BucketColumns& former, std::shared_ptr<const BucketColumns> columns) {
    cache_.replace(bucket, former, std::move(columns));
  }
  void put(BucketId bucket, std::shared_ptr<const BucketColumns> columns) {
    cache_.put(query_, bucket, std::move(columns));
  }

 private:
  ColumnCache& cache_;
  std::once_flag asked_;
  bool is_possible_ = false;
  ColumnQuery query_;
};

/// Looks for the columns of a bucket, and reads its documents only if there are none.
///
/// Threading: as BucketReader; the accessors may be called once next() has returned false.
class ColumnReader final : public visitors::BucketReader {
 public:
  ColumnReader(std::shared_ptr<ColumnLookup> lookup, BucketId bucket) : lookup_(std::move(lookup)), bucket_(bucket) {}

  Result<bool> next(const visitors::BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) override;
  void close() override { documents_.close(); }

  /// The columns that stand for the documents; none if the documents were read.
  const std::optional<FoundColumns>& found() const { return found_; }
  /// The content that was read. nullopt if columns must not be made of it, for example because the bucket changed
  /// meanwhile.
  const std::optional<ColumnContent>& content() const { return content_; }

 private:
  Status begin(const visitors::BucketOnNode& bucket);
  Status find_columns(const visitors::BucketOnNode& bucket);
  Status finish_content(const visitors::BucketOnNode& bucket);

  std::shared_ptr<ColumnLookup> lookup_;
  BucketId bucket_;
  bool has_begun_ = false;
  std::optional<FoundColumns> found_;
  std::optional<ColumnContent> content_;
  WholeBucket documents_;
  /// The documents that were read; only if the bucket had columns before: then it has other entries probably, and these
  /// have to be known for the columns to stay of use.
  std::optional<std::vector<GlobalId>> given_;
};

}  // namespace fjord::mapreduce
