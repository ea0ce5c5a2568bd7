#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/mapreduce/application.h"
#include "fjord/mapreduce/job_rows.h"
#include "tuple.h"

namespace fjord::mapreduce {

class ColumnsBuilder;
struct FoundColumns;

/// A tuple with one value. `hash` is hash64() of the key.
struct HashedTuple {
  std::uint64_t hash = 0;
  std::string_view key;
  std::string_view value;
};

/// Limits the memory of a job's rows. Threading: callable from any thread.
class RowBudget {
 public:
  explicit RowBudget(std::size_t bytes_max, std::stop_token stop = {})
      : bytes_max_(bytes_max), stop_(std::move(stop)) {}
  /// Counts what `rows` needs beyond `counted` bytes, sorting included, and sets `counted`. Errors: TooLarge once all
  /// rows exceed the limit; Cancelled once a stop was requested.
  Status take(const JobRows& rows, std::size_t& counted);

 private:
  const std::size_t bytes_max_;
  const std::stop_token stop_;
  std::atomic<std::size_t> bytes_{0};
};

/// Returns the destination (output bucket) of a key: its hash modulo `destinations`.
std::uint32_t destination_of(std::string_view key, std::uint32_t destinations);

/// The groups of a task in memory. The tuples that come out do not depend on the order in which documents and tuples
/// are added.
///
/// Threading: confined. Different accumulators of Application::make_accumulator() may be used on different threads.
/// Lifetime: the application that it was made for outlives it.
class Accumulator {
 public:
  virtual ~Accumulator() = default;

  /// Adds a document. Errors: those of Application::map().
  virtual Status map(const DocumentView& document) = 0;
  /// True if map_many() is faster than map().
  virtual bool takes_many() const { return false; }
  /// Adds documents from the beginning of `documents`, at least one, except those that map() fails on. Only if
  /// takes_many(). The returned MappedDocuments has no tuples. Errors: those of the task.
  virtual Result<MappedDocuments> map_many(std::span<const DocumentView> documents);
  /// Adds a tuple that came out of another accumulator. Errors: Corruption; TooLarge.
  virtual Status merge(std::string_view key, std::string_view value) = 0;
  /// Adds many tuples.
  virtual Status merge(std::span<const HashedTuple> tuples);

  /// The expressions whose values for each document are all that map() takes of it, as canonical texts. Empty if map()
  /// needs the documents, or may fail.
  virtual std::vector<std::string> values() const { return {}; }
  /// From now on map() only adds the values() of each document to `columns`, one column for each, and changes no group;
  /// the caller adds the documents with map_columns() later. Null: map() adds to the groups again.
  virtual void record(ColumnsBuilder* /*columns*/) {}
  /// Adds all documents of a bucket by their columns. Only if there are values(). Errors: those of merge().
  virtual Status map_columns(const FoundColumns& columns);

  /// Appends the tuples of a document to `tuples` (keys and values that merge() takes, put_string() of each) without
  /// adding them to the groups. Errors: those of Application::map(); then nothing is appended.
  virtual Status map_alone(const DocumentView& document, std::string& tuples) = 0;
  /// As map_alone() for documents from the beginning of `documents`, at least one. Only if takes_many(). The tuples are
  /// in the returned MappedDocuments (`ends`). Errors: those of the task.
  virtual Result<MappedDocuments> map_many_alone(std::span<const DocumentView> documents);
  /// Removes a tuple that was merged before, so that its group is as if the tuple had never been merged. Returns false
  /// if that is not certain, for example when the largest value or all values may be gone. The group is then invalid.
  virtual bool retract(std::string_view /*key*/, std::string_view /*value*/) { return false; }

  virtual std::uint64_t tuples() const = 0;  ///< Tuples that map() has made.
  virtual std::size_t groups() const = 0;    ///< Number of groups; may lack those of the last few documents.
  virtual std::size_t bytes() const = 0;     ///< Bytes in memory; may lack those of the last few documents.
  /// Drops all groups and frees their memory.
  virtual void clear() = 0;

  /// Returns all tuples, sorted by destination and key. With 0 destinations they are unsorted and all have destination
  /// 0. The source is valid until something is added.
  virtual std::unique_ptr<TupleSource> drain(std::uint32_t destinations) = 0;
  /// Reduces all groups with `application`, for which this accumulator was made. Adds the rows, in any order, to
  /// `rows`, which is empty. Afterwards only clear() may be called. Errors: those of reduce_key(); TooLarge.
  virtual Status reduce(Application& application, RowBudget& budget, JobRows& rows);
};

/// Default memory in bytes that uncombined values take before they are combined.
inline constexpr std::size_t kCombineFrom = std::size_t{256} << 10;

/// Returns the application's own accumulator, or a table of the tuples that its map() emits. `cancelled` is for
/// Emitter. `combine_from`: the values of an application with BatchFunctions stay uncombined until they take this much
/// memory or are drained. In a table below that size all values of a key are combined at once, sorted by their bytes.
/// So the tuples depend only on the input even if combine() depends on the order, as floating-point sums do.
std::unique_ptr<Accumulator> make_accumulator(Application& application, std::function<bool()> cancelled = {},
                                              std::size_t combine_from = kCombineFrom);

}  // namespace fjord::mapreduce
