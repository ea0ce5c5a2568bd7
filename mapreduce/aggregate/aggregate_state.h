#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fjord/mapreduce/aggregate_spec.h"
#include "scalar.h"

/// The states of aggregates. States of fixed size are in the record of a group, larger ones on the heap behind a
/// pointer.
namespace fjord::mapreduce {

class Column;

/// The memory layout of the states of a plan's aggregates, and the operations on them.
///
/// Threading: confined. Lifetime: `plan` outlives it.
class AggregateStates {
 public:
  explicit AggregateStates(const AggregatePlan& plan);

  /// Bytes of all states of one group. They must begin at an address that is a multiple of 16.
  std::size_t size() const { return size_; }
  void construct(char* states) const;
  void destroy(char* states) const;
  /// Adds one document, given by the values of the plan's inputs. `heap` counts bytes outside the record. Errors:
  /// TooLarge.
  Status add(char* states, std::span<const ScalarView> inputs, std::size_t& heap) const;
  /// Returns true if add() may fail.
  bool may_fail() const;
  /// Adds the values of rows `first` and later of a column to one aggregate: each row to the group in `groups` at its
  /// place. `column` is null for a count of documents. Only if not may_fail().
  void add_rows(std::size_t aggregate, std::span<char* const> groups, const Column* column, std::size_t first,
                std::size_t& heap) const;
  /// Appends the states to `out`. Equal states have equal bytes.
  void encode(const char* states, std::string& out) const;
  /// Adds states that encode() wrote. Errors: Corruption (part of them may have been added); TooLarge.
  Status merge(char* states, std::string_view encoded, std::size_t& heap) const;
  /// Removes states that were merged before: the states then have the bytes of the remaining values alone. Returns
  /// false if that is impossible from the states alone; they are then invalid.
  bool retract(char* states, std::string_view encoded, std::size_t& heap) const;
  /// Returns the number of documents in the states; nullopt if no aggregate counts documents, as count() does.
  std::optional<std::uint64_t> documents(const char* states) const;
  /// Writes the values of all aggregates, one after the other.
  void write(const char* states, JsonWriter& json) const;

 private:
  /// Adds a value to one aggregate that has an argument.
  static Status add_one(const AggregatePlan::Aggregate& aggregate, char* state, const ScalarView& value,
                        std::size_t& heap);
  static bool retract_one(const AggregatePlan::Aggregate& aggregate, char* state, ByteReader& in, std::size_t& heap);
  static Status merge_one(const AggregatePlan::Aggregate& aggregate, char* state, ByteReader& in, std::size_t& heap);

  const AggregatePlan& plan_;
  std::vector<std::size_t> offsets_;
  std::size_t size_ = 0;
  std::optional<std::size_t> documents_offset_;
};

}  // namespace fjord::mapreduce
