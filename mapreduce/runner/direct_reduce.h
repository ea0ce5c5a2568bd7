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

#include "fjord/common/bulk_executor.h"
#include "task/accumulator.h"
#include "task/task.h"

namespace fjord::mapreduce {

/// Receives the tuples of direct map tasks and makes the results of the job.
///
/// A bucket may be read more than once because nodes fail, and a task that does not complete has sent tuples already.
/// So the tuples of a unit (direct_map_visitor.cpp) are kept unmerged until all buckets of the unit are done, and are
/// merged then: each bucket counts once.
///
/// The groups of an aggregation are in several tables, chosen by the first bits of their hash. So all threads of the
/// BulkExecutor merge tuples and make rows, and each table is small enough for a cache.
///
/// Threading: confined. Lifetime: `application` and `bulk` outlive it.
class DirectReduce {
 public:
  DirectReduce(Application& application, BulkExecutor& bulk);

  /// Takes a chunk that a task sent under the name of `bucket`. Errors: Corruption; TooLarge.
  Status on_chunk(BucketId bucket, std::string bytes);
  /// Takes the report of a bucket that is done. Errors: Corruption, also if chunks of the unit are missing; TooLarge.
  Status on_bucket(BucketId bucket, const TaskReport& report);
  /// Called when no more chunks will come. Returns the buckets that were reported done but whose unit is incomplete:
  /// they must be read again. Drops all incomplete units.
  std::vector<BucketId> take_lost();

  /// Sum of the reports of empty buckets and of the buckets whose unit is complete and merged.
  const TaskReport& totals() const { return totals_; }
  std::uint64_t buckets() const { return buckets_; }
  /// Memory of groups and unmerged tuples in bytes.
  std::size_t bytes() const { return table_bytes_ + waiting_bytes_; }

  /// Returns the rows in the application's order, or else by key. Called once, at the end. Errors: those of the
  /// application; TooLarge if the rows need more than `bytes_max` bytes; Cancelled if `stop` is requested before all
  /// groups are reduced.
  Result<JobRows> finish(std::size_t bytes_max, std::stop_token stop = {});

 private:
  struct Unit {
    BucketId carrier;
    std::vector<std::string> chunks;
    std::map<BucketId, TaskReport> done;
  };

  void forget(std::map<std::uint64_t, Unit>::iterator unit);
  void count(const TaskReport& report);
  Status add(std::string_view chunk);
  /// Adds Application::tuple_of_nothing() if there is no group.
  Status add_group_of_nothing();
  /// Calls `f(i)` for each table, in parallel if `work` is large. Errors: that of the first table which has one.
  Status for_each_table(std::size_t work, const std::function<Status(std::size_t)>& f);

  Application& application_;
  BulkExecutor& bulk_;
  std::vector<std::unique_ptr<Accumulator>> tables_;  ///< Each has the groups of some hashes; a power of two of tables.
  unsigned table_bits_ = 0;
  std::vector<std::vector<HashedTuple>> tuples_;  ///< Tuples of the chunk that is being merged, by table.
  std::size_t table_bytes_ = 0;
  std::map<std::uint64_t, Unit> units_;
  std::size_t waiting_bytes_ = 0;
  TaskReport totals_;
  std::uint64_t buckets_ = 0;
};

}  // namespace fjord::mapreduce
