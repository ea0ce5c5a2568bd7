#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "fjord/common/metrics.h"
#include "fjord/common/thread_annotations.h"
#include "fjord/common/tunable.h"
#include "fjord/document/document_type.h"
#include "partials.h"

namespace fjord::mapreduce {

/// Columns (columns/column_cache.h) take one part of mapreduce.incremental_bytes, partials the others.
inline constexpr std::size_t kColumnsPart = 4;

/// The data that incremental jobs of a process keep for the next run of the same query. It is in memory; the tunable
/// mapreduce.incremental_bytes limits it. take() removes an entry; put() puts it back.
///
/// Threading: callable from any thread. Lifetime: `limit` and `registry` outlive it.
class PartialCache {
 public:
  PartialCache(Tunable& limit, MetricRegistry& registry);

  /// Returns the number of a query. `text` identifies what it computes, `types` the document types. If the types have
  /// changed, everything kept for the query is dropped and it gets a new number.
  std::uint64_t query(const std::string& text, const std::shared_ptr<const DocumentTypeRepo>& types);

  /// Returns null if nothing is kept.
  std::shared_ptr<BucketPartial> take(std::uint64_t query, BucketId bucket);
  /// Keeps a partial. Returns false and changes nothing of this query if there is no room. Partials of other queries
  /// are dropped to make room, least recently used first.
  bool put(std::uint64_t query, BucketId bucket, const std::shared_ptr<BucketPartial>& partial);
  std::shared_ptr<const UnitPartial> take_unit(std::uint64_t query, const std::vector<BucketId>& buckets);
  bool put_unit(std::uint64_t query, const std::vector<BucketId>& buckets, std::shared_ptr<const UnitPartial> unit);

  std::uint64_t new_serial();
  std::size_t bytes() const;

 private:
  struct Query {
    std::uint64_t number = 0;
    std::shared_ptr<const DocumentTypeRepo> types;
    std::uint64_t used = 0;
    std::uint64_t bytes = 0;
    std::map<BucketId, std::shared_ptr<BucketPartial>> buckets;
    std::map<std::vector<BucketId>, std::shared_ptr<const UnitPartial>> units;
  };

  Query* find(std::uint64_t number) FJORD_REQUIRES(mutex_);
  void forget(Query& query) FJORD_REQUIRES(mutex_);
  std::size_t limit() const;
  bool make_room(const Query& query, std::size_t bytes) FJORD_REQUIRES(mutex_);
  void account(Query& query, std::size_t added, std::size_t removed) FJORD_REQUIRES(mutex_);

  Tunable& limit_;
  Gauge& bytes_metric_;
  mutable std::mutex mutex_;
  std::map<std::string, Query> queries_ FJORD_GUARDED_BY(mutex_);
  std::uint64_t numbers_ FJORD_GUARDED_BY(mutex_) = 0;
  std::uint64_t uses_ FJORD_GUARDED_BY(mutex_) = 0;
  std::uint64_t serials_ FJORD_GUARDED_BY(mutex_) = 0;
  std::size_t bytes_ FJORD_GUARDED_BY(mutex_) = 0;
};

}  // namespace fjord::mapreduce
