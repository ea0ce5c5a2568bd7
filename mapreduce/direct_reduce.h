#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "accumulator.h"
#include "fjord/common/bulk_executor.h"
#include "task.h"

namespace fjord::mapreduce {

/// Takes what direct map tasks send and makes the results of a job of it.
///
/// A bucket may be read more than once, as nodes fail, and what was sent before its end may come to nothing. So the
/// tuples of a unit (direct_map_visitor.cpp) are kept as they came until all buckets of the unit are done, and only
/// then added up: each bucket counts once.
///
/// The groups of an aggregation lie in several tables, by the first bits of their hash, so that adding tuples up and
/// making rows of groups goes on in all threads of the BulkExecutor, and each table is small enough for a cache.
///
/// Threading: confined. Lifetime: `application` and `bulk` outlive it.
class DirectReduce {
 public:
  /// `count_at_once`: wrong on purpose; adds tuples when they come.
  DirectReduce(Application& application, BulkExecutor& bulk, bool count_at_once = false);

  /// Something that a task sent under the name of `bucket`. Errors: Corruption; TooLarge.
  Status on_chunk(BucketId bucket, std::string bytes);
  /// Errors: Corruption, also if chunks of the unit are missing; TooLarge.
  Status on_bucket(BucketId bucket, const TaskReport& report);
  /// Buckets that were said to be done, but whose unit will not be complete, once no more is to come: they have to be
  /// read again. What is known of them is forgotten.
  std::vector<BucketId> take_lost();

  /// Of the buckets that count.
  const TaskReport& totals() const { return totals_; }
  std::uint64_t buckets() const { return buckets_; }
  /// What groups and waiting tuples take.
  std::size_t bytes() const { return table_bytes_ + waiting_bytes_; }

  /// The rows as the application orders them, else by key; once, at the end. Errors: those of the application; TooLarge
  /// if they take more than `bytes_max`; Cancelled if `stop` says so before all groups are reduced.
  Result<Rows> finish(std::size_t bytes_max, std::stop_token stop = {});

 private:
  struct Unit {
    BucketId carrier;
    std::vector<std::string> chunks;
    std::map<BucketId, TaskReport> done;
  };

  void forget(std::map<std::uint64_t, Unit>::iterator unit);
  void count(const TaskReport& report);
  Status add(std::string_view chunk);
  /// Application::tuple_of_nothing(), if there is no group at all.
  Status add_group_of_nothing();
  /// Calls `f(i)` for each table. Errors: that of the first table which has one.
  Status for_each_table(std::size_t work, const std::function<Status(std::size_t)>& f);

  Application& application_;
  BulkExecutor& bulk_;
  bool count_at_once_;
  std::vector<std::unique_ptr<Accumulator>> tables_;  ///< A power of two, or one.
  unsigned table_bits_ = 0;
  std::vector<std::vector<HashedTuple>> tuples_;  ///< By table, of the chunk that is being added.
  std::size_t table_bytes_ = 0;
  std::map<std::uint64_t, Unit> units_;
  std::size_t waiting_bytes_ = 0;
  TaskReport totals_;
  std::uint64_t buckets_ = 0;
};

}  // namespace fjord::mapreduce
