#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fjord/mapreduce/aggregate_spec.h"
#include "scalar.h"

/// The states of aggregates while values come in: fixed sizes beside each other in the record of a group, larger ones
/// on the heap behind a pointer.
namespace fjord::mapreduce {

/// Wrong on purpose, so that tests can be seen to notice it.
struct AggregateSabotage {
  bool average_of_averages = false;  ///< Merges averages as if each had the same number of values.
};

/// Where the states of a plan's aggregates lie, and what is done with them.
///
/// Threading: confined. Lifetime: `plan` outlives it.
class AggregateStates {
 public:
  explicit AggregateStates(const AggregatePlan& plan, AggregateSabotage sabotage = {});

  /// Bytes of all states of one group; they begin at an address that is a multiple of 16.
  std::size_t size() const { return size_; }
  void construct(char* states) const;
  void destroy(char* states) const;
  /// Adds one document, by the values of the plan's inputs. `heap` counts the bytes outside the record. Errors:
  /// TooLarge.
  Status add(char* states, std::span<const ScalarView> inputs, std::size_t& heap) const;
  /// Equal states have equal bytes.
  void encode(const char* states, std::string& out) const;
  /// Adds what encode() wrote. Errors: Corruption (some of it may have been added); TooLarge.
  Status merge(char* states, std::string_view encoded, std::size_t& heap) const;
  /// Takes out what was merged before: the bytes of the states are then those of the values that are left. False if
  /// that cannot be said from the states alone; they are good for nothing then.
  bool retract(char* states, std::string_view encoded, std::size_t& heap) const;
  /// How many documents are in them; nothing if no aggregate says so, as count() does.
  std::optional<std::uint64_t> documents(const char* states) const;
  /// The values of all aggregates, one after the other.
  void write(const char* states, JsonWriter& json) const;

 private:
  static bool retract_one(const AggregatePlan::Aggregate& aggregate, char* state, ByteReader& in, std::size_t& heap);
  Status merge_one(const AggregatePlan::Aggregate& aggregate, char* state, ByteReader& in, std::size_t& heap) const;

  const AggregatePlan& plan_;
  AggregateSabotage sabotage_;
  std::vector<std::size_t> offsets_;
  std::size_t size_ = 0;
  std::optional<std::size_t> documents_offset_;
};

}  // namespace fjord::mapreduce
