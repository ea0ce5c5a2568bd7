#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accumulator.h"
#include "fjord/common/coding.h"
#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document.h"
#include "fjord/mapreduce/aggregate_spec.h"
#include "fjord/rpc/messages.h"

/// What the runner and the tasks of a job agree on.
namespace fjord::mapreduce {

inline constexpr const char* kMapVisitor = "mapreduce.map";
inline constexpr const char* kReduceVisitor = "mapreduce.reduce";
inline constexpr const char* kRemoveVisitor = "mapreduce.remove";
inline constexpr const char* kPutVisitor = "mapreduce.put";
inline constexpr const char* kTuplesType = "fjord_tuples";
inline constexpr const char* kResultType = "fjord_result";
inline constexpr std::uint8_t kTuplesVersion = 1;

/// What a task has to know of its job. Travels as the parameters of a visitor.
struct TaskSpec {
  std::string job;
  std::string application;
  std::string document_type;
  std::string output_namespace;
  std::uint64_t output_base = 0;
  std::uint32_t output_buckets = 0;
  std::vector<rpc::Parameter> parameters;         ///< Of the application.
  std::vector<std::uint64_t> expected_documents;  ///< Reduce: tuple documents by destination.
  bool direct = false;                            ///< Map: tuples go to the runner, and are not put.
  /// Times that map was begun anew: tuple documents of another run are those of another job.
  std::uint32_t run = 0;
  std::uint32_t dead_letters_max = 0;  ///< Map: so many documents may fail in one task.
  /// Direct map: the selection of the visit, if what map makes of documents is to be kept for the next job of the same,
  /// and what one before has kept to be used. Empty: no.
  std::string incremental = {};
  /// Map: a document that is given twice counts once, as the one that put it may be putting it again.
  bool once = false;
  // What it reads, if these are rows of the pass before.
  bool reads_rows = false;
  std::vector<AggregateColumn> columns = {};  ///< Of them; none: key and value.
  std::string row_selection = {};             ///< Map: which of them.
  // What reduce and put tasks put; a result for each key (of the last pass), rows for the next pass and for the runner,
  // documents that stay.
  bool puts_results = true;
  bool puts_rows = false;
  bool puts_all = false;  ///< The rows are all there are, of which the runner will take some.
  rpc::RowTarget into = {};
  bool counts_processors = false;  ///< Reports say how long processors worked. Versions before refuse the task.
  /// Of the application, as ApplicationInfo has it. A node with another one refuses the task.
  std::string version = {};

  std::vector<rpc::Parameter> to_parameters() const;
  /// Errors: InvalidArgument.
  static Result<TaskSpec> from_parameters(const std::vector<rpc::Parameter>& parameters);

  std::uint64_t location(std::uint32_t destination) const { return output_base + destination; }
  /// The bucket, with that many bits, that holds what belongs to `destination`. used_bits <= 32.
  BucketId bucket(std::uint32_t destination, unsigned used_bits) const {
    return BucketId(used_bits, location(destination));
  }
  /// The job as tuple documents name it, with the run.
  std::string tuples_job() const { return run == 0 ? job : job + "/" + std::to_string(run); }
  /// The same for rows that reduce has made; `is_whole`: before some of them are taken.
  std::string rows_job(bool is_whole) const { return job + "/" + std::to_string(run) + (is_whole ? "/all" : "/rows"); }
  std::string tuples_id(BucketId source, std::uint32_t destination, std::uint32_t counter) const;
  std::string result_id(std::string_view key, std::uint32_t destination) const;
};

/// How a task went: the result string of its bucket.
struct TaskReport {
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tuples = 0;
  std::uint64_t results = 0;
  std::map<std::uint32_t, std::uint64_t> tuple_documents;  ///< By destination.
  std::uint64_t spilled_bytes = 0;
  // Direct: buckets that a visitor read together are one unit, whose tuples count when all of its buckets are done.
  std::uint64_t unit = 0;  ///< Not 0, and of no other unit of the job; 0: the bucket is for itself.
  std::uint64_t unit_buckets = 0;
  std::uint64_t unit_chunks = 0;              ///< Sent before the first bucket was said to be done.
  std::uint64_t sent_bytes = 0;               ///< Of tuples that were put or sent; of a unit in one of its buckets.
  std::uint64_t busy_us = 0;                  ///< Time in map or reduce.
  std::uint64_t processor_us = 0;             ///< Of it, processors worked; 0: not asked for.
  std::vector<rpc::DeadLetter> dead_letters;  ///< Documents that map failed on; they are among `documents`.
  std::uint64_t reused = 0;                   ///< Documents among `documents` that an earlier job had read.

  std::string encode() const;
  /// Errors: Corruption.
  static Result<TaskReport> decode(std::string_view bytes);
};

/// The key as it stands in a result's field and id: as it is if it is UTF-8 without control characters (in an id also
/// without %), else with percent signs. Different keys stay different.
std::string printable_key(std::string_view key);
std::string key_in_id(std::string_view key);
bool is_plain_utf8(std::string_view text);
/// Letters, digits, dot, minus and underscore, at most 64.
bool is_plain_name(std::string_view text);

/// Cuts sorted tuples into documents of about `bytes_max`, destination by destination.
class TupleDocuments {
 public:
  TupleDocuments(std::unique_ptr<TupleSource> source, std::size_t bytes_max)
      : source_(std::move(source)), bytes_max_(bytes_max) {}

  struct Block {
    std::uint32_t destination = 0;
    std::uint32_t counter = 0;
    std::string tuples;
  };
  /// Nothing at the end. Errors: those of the source.
  Result<std::optional<Block>> next();

 private:
  Status advance();

  std::unique_ptr<TupleSource> source_;
  std::size_t bytes_max_;
  bool begun_ = false;
  bool is_over_ = false;
  Tuple tuple_;
  std::size_t at_value_ = 0;
  std::optional<std::uint32_t> destination_;
  std::uint32_t counter_ = 0;
};

/// Has `table` take the document. If map() fails on it, which tells of the document and not of the task, it becomes a
/// dead letter and that is OK, unless there are spec.dead_letters_max in the report. Errors: then InvalidArgument that
/// says so (map()'s own if none may fail); TooLarge, Cancelled and what may go away by itself.
Status map_or_set_aside(Accumulator& table, const DocumentView& document, const TaskSpec& spec, TaskReport& report);

/// The same for a document by itself: Accumulator::map_alone().
Status map_alone_or_set_aside(Accumulator& table, const DocumentView& document, const TaskSpec& spec,
                              TaskReport& report, std::string& tuples);

/// What map_or_set_aside() does with `status`, which is what map() said of the document.
Status or_set_aside(const Status& status, const DocumentView& document, const TaskSpec& spec, TaskReport& report);

/// The error of a job with more dead letters than `limit`. InvalidArgument.
Status too_many_dead_letters(std::uint64_t limit, const std::string& last);

/// Calls `f(key, value)` for the tuples of one document until one fails. Errors: Corruption; those of `f`.
template <typename F>
Status for_each_tuple(std::string_view tuples, F f) {
  ByteReader in(tuples);
  const bool known = in.fixed<std::uint8_t>() == kTuplesVersion;
  while (known && in.ok() && in.remaining() > 0) {
    const std::string_view key = in.string();
    const std::uint64_t count = in.varint();
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string_view value = in.string();
      if (!in.ok()) break;
      FJORD_TRY(f(key, value));
    }
  }
  if (!known || !in.ok()) return Status(StatusCode::Corruption, "malformed tuples");
  return Status::ok();
}

/// What a direct map task sends: which unit the tuples are of, and they.
struct TupleChunk {
  std::uint64_t unit = 0;
  std::string_view tuples;

  static std::string encode(std::uint64_t unit, std::string_view tuples);
  /// Errors: Corruption.
  static Result<TupleChunk> decode(std::string_view bytes);
};

/// The result of one key: nothing, or a JSON value. Errors: those of JobFunctions::reduce(), with the key;
/// InvalidArgument if the application gives more than one result, or none that is JSON.
Result<std::optional<std::string>> reduce_key(Application& application, const Tuple& tuple);

/// Reduces the keys of a source one after the other, or many at a time if the application has that.
/// Lifetime: what it is given outlives it.
class KeyReducer {
 public:
  KeyReducer(Application& application, TupleSource& source)
      : application_(application), source_(source), batches_(application.batches()) {}

  /// The next key that has a result, and that, a JSON value; false at the end. Errors: those of the source and of
  /// reduce_key().
  Result<bool> next(std::string& key, std::string& json);

 private:
  Status reduce_many();

  Application& application_;
  TupleSource& source_;
  BatchFunctions* batches_;
  Tuple tuple_;
  std::deque<std::pair<std::string, std::string>> ready_;  ///< Of reduce_many(): keys with results.
  bool is_over_ = false;
};

}  // namespace fjord::mapreduce
