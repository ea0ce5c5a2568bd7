#pragma once

#include <cstdint>
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
#include "fjord/rpc/job_messages.h"
#include "keys.h"

/// The data that the runner of a job and its tasks exchange: task parameters, task reports and the form of tuples.
namespace fjord::mapreduce {

inline constexpr const char* kMapVisitor = "mapreduce.map";
inline constexpr const char* kReduceVisitor = "mapreduce.reduce";
inline constexpr const char* kRemoveVisitor = "mapreduce.remove";
inline constexpr const char* kPutVisitor = "mapreduce.put";
inline constexpr const char* kTuplesType = "fjord_tuples";
inline constexpr const char* kResultType = "fjord_result";
inline constexpr std::uint8_t kTuplesVersion = 1;

/// The buckets with `bits` bits that hold the documents of `count` locations from `base` on, each once. With few bits
/// several locations are in one bucket.
std::vector<BucketId> output_buckets(std::uint64_t base, std::uint32_t count, unsigned bits);

/// The parameters of a task. They travel as the parameters of a visitor.
struct TaskSpec {
  std::string job;
  std::string application;
  std::string document_type;
  std::string output_namespace;
  std::uint64_t output_base = 0;
  std::uint32_t output_buckets = 0;
  std::vector<rpc::Parameter> parameters;         ///< Parameters of the application.
  std::vector<std::uint64_t> expected_documents;  ///< Reduce: number of tuple documents per destination.
  bool direct = false;                            ///< Map: tuples are sent to the runner and not put.
  /// Number of restarts of map and of passes before this one. It is part of the tuple documents' ids, so that runs
  /// never mix.
  std::uint32_t run = 0;
  std::uint32_t dead_letters_max = 0;  ///< Map: number of documents that may fail in one task.
  /// Incremental jobs (direct map): the selection of the visit. The task reuses what an earlier job with the same query
  /// kept and keeps its own for the next one. Empty: the job is not incremental.
  std::string incremental = {};
  /// Map: a document that is read twice counts once. A former owner may put the documents again while they are read.
  bool once = false;
  // Set if the task reads the rows of the pass before.
  bool reads_rows = false;
  std::vector<AggregateColumn> columns = {};  ///< Columns of the rows; empty: key and value.
  std::string row_selection = {};             ///< Map: selects rows.
  // A reduce or put task writes one or more of these: results, rows, documents of the target `into`.
  bool puts_results = true;  ///< One result for each key. True in the last pass.
  bool puts_rows = false;    ///< Rows for the next pass or for the runner.
  bool puts_all = false;     ///< `puts_rows` covers all rows; the runner selects some of them later.
  rpc::RowTarget into = {};
  bool counts_processors = false;  ///< Reports contain the processor time. Nodes of older releases refuse such a task.
  /// Version of the application (ApplicationInfo::version). A node that has another version refuses the task.
  std::string version = {};

  std::vector<rpc::Parameter> to_parameters() const;
  /// Errors: InvalidArgument.
  static Result<TaskSpec> from_parameters(const std::vector<rpc::Parameter>& parameters);

  std::uint64_t location(std::uint32_t destination) const { return output_base + destination; }
  /// The bucket with `used_bits` bits that holds the documents of `destination`. `used_bits` is at most 32.
  BucketId bucket(std::uint32_t destination, unsigned used_bits) const {
    return BucketId(used_bits, location(destination));
  }
  /// The value of the field `job` of tuple documents: the job id, followed by the run if it is not 0.
  std::string tuples_job() const { return run == 0 ? job : job + "/" + std::to_string(run); }
  /// The value of the field `job` of pages of rows. `is_whole`: pages of all rows, before the runner selects some.
  std::string rows_job(bool is_whole) const { return job + "/" + std::to_string(run) + (is_whole ? "/all" : "/rows"); }
  std::string tuples_id(BucketId source, std::uint32_t destination, std::uint32_t counter) const;
  std::string result_id(std::string_view key, std::uint32_t destination) const;
};

/// The outcome of a task for one bucket. Travels as the bucket's result string.
struct TaskReport {
  std::uint64_t documents = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tuples = 0;
  std::uint64_t results = 0;
  std::map<std::uint32_t, std::uint64_t> tuple_documents;  ///< Number of tuple documents put, by destination.
  std::uint64_t spilled_bytes = 0;
  // Direct: the buckets that a visitor reads together form a unit. Its tuples count once all of its buckets are done.
  std::uint64_t unit = 0;  ///< Id of the unit, unique in the job; 0: the bucket belongs to no unit.
  std::uint64_t unit_buckets = 0;
  std::uint64_t unit_chunks = 0;   ///< Chunks of the unit. All are sent before its first bucket is reported done.
  std::uint64_t sent_bytes = 0;    ///< Bytes of tuples put or sent; one bucket of a unit has the sum.
  std::uint64_t busy_us = 0;       ///< Time in map or reduce, microseconds.
  std::uint64_t processor_us = 0;  ///< Processor time in map or reduce, microseconds; 0: not counted.
  std::vector<rpc::DeadLetter> dead_letters;  ///< Documents that map failed on; `documents` includes them.
  std::uint64_t reused = 0;                   ///< Documents in `documents` that only an earlier job read.

  std::string encode() const;
  /// Errors: Corruption.
  static Result<TaskReport> decode(std::string_view bytes);
};

/// Cuts tuples that are sorted by destination into documents of about `bytes_max` bytes.
class TupleDocuments {
 public:
  TupleDocuments(std::unique_ptr<TupleSource> source, std::size_t bytes_max)
      : source_(std::move(source)), bytes_max_(bytes_max) {}

  struct Block {
    std::uint32_t destination = 0;
    std::uint32_t counter = 0;
    std::string tuples;
  };
  /// Returns the tuples of the next document, or nullopt at the end. Errors: those of the source.
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

/// Maps one document into `table`. If map() fails because of the document and not because of the task, the document
/// becomes a dead letter and the call returns OK. Errors: InvalidArgument if the report already has
/// `spec.dead_letters_max` dead letters (map()'s own error if that limit is 0); TooLarge, Cancelled, IoError, Timeout
/// and transient errors, which are those of the task.
Status map_or_set_aside(Accumulator& table, const DocumentView& document, const TaskSpec& spec, TaskReport& report);

/// As map_or_set_aside(), with Accumulator::map_alone().
Status map_alone_or_set_aside(Accumulator& table, const DocumentView& document, const TaskSpec& spec,
                              TaskReport& report, std::string& tuples);

/// Handles `status`, which map() returned for the document, as map_or_set_aside() does.
Status or_set_aside(const Status& status, const DocumentView& document, const TaskSpec& spec, TaskReport& report);

/// The error of a job with more dead letters than `limit`: InvalidArgument. `last` is the error of the last one.
Status too_many_dead_letters(std::uint64_t limit, const std::string& last);

/// Calls `f(key, value)` for the tuples of one document until a call fails. Errors: Corruption; those of `f`.
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

/// A message of a direct map task: tuples and the unit they belong to.
struct TupleChunk {
  std::uint64_t unit = 0;
  std::string_view tuples;

  static std::string encode(std::uint64_t unit, std::string_view tuples);
  /// Errors: Corruption.
  static Result<TupleChunk> decode(std::string_view bytes);
};

}  // namespace fjord::mapreduce
