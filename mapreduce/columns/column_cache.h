#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "columns/bucket_columns.h"
#include "fjord/common/metrics.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_type.h"

namespace fjord::mapreduce {

/// The documents and the values that columns are made of.
struct ColumnQuery {
  std::shared_ptr<const DocumentTypeRepo> types;
  std::string document_type;
  std::string selection;            ///< Canonical text.
  std::vector<std::string> values;  ///< Canonical texts of the expressions.
};

/// Columns that a query can use. `places` has the index in `columns->columns` of each of the query's values.
struct FoundColumns {
  std::shared_ptr<const BucketColumns> columns;
  std::vector<std::size_t> places;

  /// Returns the column of a value of the query.
  const Column& of(std::size_t value) const { return (*columns->columns)[places[value]]; }
};

/// The columns of a storage node, in memory. If the room does not suffice, the columns of the query that was used the
/// longest time ago are dropped. New ones of a query are refused if only its own are left: dropping these would leave a
/// run over all buckets without any that the next run could use.
///
/// Threading: any thread.
class ColumnCache {
 public:
  /// `limit` returns the bytes that all columns may take; it may change.
  ColumnCache(std::function<std::size_t()> limit, MetricRegistry& registry);

  /// Returns columns of the bucket that were made of this version of its content and have all values of the query.
  std::optional<FoundColumns> find(const ColumnQuery& query, BucketId bucket, const ContentVersion& version);
  /// Returns columns of the bucket that have all values of the query, and were made of any version of its content.
  std::optional<FoundColumns> find_former(const ColumnQuery& query, BucketId bucket);
  /// Puts `columns` in the place of `former`, if this is still there.
  void replace(BucketId bucket, const BucketColumns& former, std::shared_ptr<const BucketColumns> columns);
  /// Replaces the columns of the bucket that were made of the same expressions.
  void put(const ColumnQuery& query, BucketId bucket, std::shared_ptr<const BucketColumns> columns);
  std::size_t limit() const { return limit_(); }
  std::size_t bytes() const;

 private:
  /// Columns with the same values.
  struct Set {
    ColumnQuery query;
    std::unordered_map<BucketId, std::shared_ptr<const BucketColumns>> buckets;
    std::size_t bytes = 0;
    std::uint64_t used = 0;
  };

  /// Returns columns of the bucket that have all values of the query and for which `f(content)` is true.
  template <typename F>
  std::optional<FoundColumns> find_if(const ColumnQuery& query, BucketId bucket, F f) FJORD_REQUIRES(mutex_);
  std::list<Set>::iterator oldest() FJORD_REQUIRES(mutex_);
  /// Drops sets until the limit holds, which may have been lowered.
  void trim() FJORD_REQUIRES(mutex_);
  bool make_room(const Set& set, std::size_t bytes) FJORD_REQUIRES(mutex_);
  void drop(std::list<Set>::iterator set) FJORD_REQUIRES(mutex_);
  void account(Set& set, std::size_t added, std::size_t removed) FJORD_REQUIRES(mutex_);

  const std::function<std::size_t()> limit_;
  Gauge& bytes_metric_;
  mutable std::mutex mutex_;
  std::list<Set> sets_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t uses_ FJORD_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ FJORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace fjord::mapreduce
