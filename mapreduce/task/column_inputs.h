#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "columns/column_reader.h"
#include "task_visitors.h"

namespace fjord::mapreduce {

/// The buckets that a map task reads with the help of columns (docs/design/0024-columns.md): columns that are found
/// stand for the documents of a bucket; otherwise its documents are read, and columns are made of them.
///
/// Threading: confined to the executor of the task. A reader that it made is used on the thread of a stripe until the
/// end of its bucket.
class ColumnInputs {
 public:
  /// `values` are those of the task's accumulators (Accumulator::values()). Returns null if there are none or no room
  /// for columns, or if the task reads rows, or documents of which some may come twice.
  static std::unique_ptr<ColumnInputs> make(std::shared_ptr<TaskContext> shared, const visitors::VisitContext& context,
                                            const TaskSpec& spec, const MapInput& input,
                                            std::vector<std::string> values);

  /// While it exists, documents that are mapped into `table` fill the columns of `bucket` instead, as long as it has
  /// any: end() adds them to the table.
  class Recording {
   public:
    /// `inputs` is null if the task has no columns.
    Recording(ColumnInputs* inputs, BucketId bucket, Accumulator& table);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    Accumulator& table_;
  };

  /// Makes the reader of a bucket. After that either end() or drop() is called for the bucket.
  std::shared_ptr<visitors::BucketReader> make_reader(BucketId bucket);
  /// Called after some documents of the bucket were mapped. If its columns take more than a small part of the room,
  /// adds their documents to `table`, and makes no columns of this bucket. Errors: those of Accumulator::map_columns().
  Status limit_memory(BucketId bucket, Accumulator& table, TaskReport& report);
  /// The bucket was read. Adds the documents that columns stand for to `table` and, if they were not read, to `report`.
  /// Keeps columns that were made. Errors: those of Accumulator::map_columns().
  Status end(BucketId bucket, Accumulator& table, TaskReport& report);
  void drop(BucketId bucket) { inputs_.erase(bucket); }

 private:
  struct Input {
    explicit Input(std::size_t columns) : made(std::in_place, columns) {}
    std::shared_ptr<ColumnReader> reader;
    std::optional<ColumnsBuilder> made;  ///< Made of the documents that are read; nullopt: given up.
  };

  ColumnInputs(std::shared_ptr<TaskContext> shared, ColumnQuery query);

  /// Adds the documents of columns to `table`, and counts their tuples.
  Status add(const FoundColumns& columns, Accumulator& table, TaskReport& report);
  /// Ends the columns of documents that were read, and adds these to `table`. Returns the columns.
  Result<std::shared_ptr<BucketColumns>> add_made(Input& input, Accumulator& table, TaskReport& report);

  std::shared_ptr<TaskContext> shared_;
  std::size_t columns_;  ///< Number of columns of a bucket.
  std::shared_ptr<ColumnLookup> lookup_;
  std::map<BucketId, Input> inputs_;
};

}  // namespace fjord::mapreduce
