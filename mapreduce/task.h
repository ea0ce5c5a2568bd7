#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document.h"
#include "fjord/rpc/messages.h"
#include "tuple_table.h"

/// What the runner and the tasks of a job agree on.
namespace fjord::mapreduce {

inline constexpr const char* kMapVisitor = "mapreduce.map";
inline constexpr const char* kReduceVisitor = "mapreduce.reduce";
inline constexpr const char* kRemoveVisitor = "mapreduce.remove";
inline constexpr const char* kTuplesType = "fjord_tuples";
inline constexpr const char* kResultType = "fjord_result";

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

  std::vector<rpc::Parameter> to_parameters() const;
  /// Errors: InvalidArgument.
  static Result<TaskSpec> from_parameters(const std::vector<rpc::Parameter>& parameters);

  std::uint64_t location(std::uint32_t destination) const { return output_base + destination; }
  /// The bucket, with that many bits, that holds what belongs to `destination`. used_bits <= 32.
  BucketId bucket(std::uint32_t destination, unsigned used_bits) const {
    return BucketId(used_bits, location(destination));
  }
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

/// Cuts the sorted tuples of a table into documents of about `bytes_max`, destination by destination.
class TupleDocuments {
 public:
  TupleDocuments(const TupleTable& table, std::uint32_t destinations, std::size_t bytes_max)
      : table_(table), keys_(table.sorted_keys(destinations)), bytes_max_(bytes_max) {}

  struct Block {
    std::uint32_t destination = 0;
    std::uint32_t counter = 0;
    std::string tuples;
  };
  std::optional<Block> next();

 private:
  const TupleTable& table_;
  std::vector<TupleTable::Key> keys_;
  std::size_t bytes_max_;
  std::size_t at_key_ = 0;
  std::size_t at_value_ = 0;
  std::vector<std::string_view> values_;
  std::optional<std::uint32_t> destination_;
  std::uint32_t counter_ = 0;
};

/// Adds the tuples of one document to a table. Errors: Corruption; TooLarge.
Status add_tuples(std::string_view tuples, TupleTable& into);

}  // namespace fjord::mapreduce
