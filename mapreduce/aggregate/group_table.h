#pragma once

#include <memory>
#include <string>
#include <vector>

#include "accumulator.h"
#include "aggregate_state.h"

namespace fjord::mapreduce {

struct GroupTableSabotage {
  AggregateSabotage states;
  bool forget_null_groups = false;
};

/// The groups of an aggregation: open addressing over records in an arena, each with a key and the states of the
/// aggregates. A document of a known group allocates nothing, unless a sketch grows.
///
/// Tables are larger than the caches next to a processor, so what a document or tuple needs of them is asked for ahead
/// of time: some documents wait, with their keys and the values that go into their group, until there are a few.
class GroupTable final : public Accumulator {
 public:
  explicit GroupTable(std::shared_ptr<const AggregatePlan> plan, GroupTableSabotage sabotage = {});
  ~GroupTable() override;
  GroupTable(const GroupTable&) = delete;
  GroupTable& operator=(const GroupTable&) = delete;

  Status map(const DocumentView& document) override;
  Status map_alone(const DocumentView& document, std::string& tuples) override;
  bool retract(std::string_view key, std::string_view value) override;
  Status merge(std::string_view key, std::string_view value) override;
  Status merge(std::span<const HashedTuple> tuples) override;
  std::uint64_t tuples() const override { return documents_; }
  std::size_t groups() const override { return records_.size(); }
  std::size_t bytes() const override;
  void clear() override;
  std::unique_ptr<TupleSource> drain(std::uint32_t destinations) override;
  Result<std::size_t> reduce(Application& application, RowBudget& budget, std::span<Rows::value_type> rows) override;

  /// The row of a group as a JSON array: the values of its key, then those of its aggregates. Errors: Corruption if the
  /// key is malformed.
  static Status write_row(const AggregatePlan& plan, const AggregateStates& states, std::string_view key,
                          const char* group, std::string& row);
  /// The values of a key as a JSON array. Errors: Corruption.
  static Status write_key(const AggregatePlan& plan, std::string_view key, std::string& text);

 private:
  static constexpr std::size_t kCacheLine = 64;

  struct Record;
  struct Slot {
    std::uint64_t hash = 0;
    Record* record = nullptr;  ///< Null: free.
  };
  /// A document whose values are in `waiting_inputs_`.
  struct Waiting {
    std::uint64_t hash = 0;
    std::uint32_t key_begin = 0;  ///< In `keys_`.
    std::uint32_t key_bytes = 0;
  };
  class Source;
  struct alignas(16) Aligned {
    char bytes[16];
  };

  /// Appends the key to `keys_` and the values that go into its group to `inputs`. False: the document is left out.
  bool evaluate(const DocumentView& document, ScalarView* inputs);
  /// The states of the group of that key, made if there is none.
  char* find(std::string_view key, std::uint64_t hash);
  // Inlined always: g++ takes a call of a function that does nothing but prefetch for one without effect.
  [[gnu::always_inline]] void prefetch_slot(std::uint64_t hash) const {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  [[gnu::always_inline]] void prefetch_record(std::uint64_t hash) const {
    if (slots_.empty()) return;
    const char* const record = reinterpret_cast<const char*>(slots_[hash & (slots_.size() - 1)].record);
    if (record == nullptr) return;
    __builtin_prefetch(record);
    __builtin_prefetch(record + kCacheLine);
  }
  /// Documents that wait go into their groups.
  void settle();
  char* states_of(Record* record) const;
  static std::string_view key_of(const Record& record);
  char* allocate(std::size_t bytes);
  void grow();

  std::shared_ptr<const AggregatePlan> plan_;
  GroupTableSabotage sabotage_;
  AggregateStates states_;
  std::vector<Slot> slots_;  ///< A power of two.
  std::vector<Record*> records_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t heap_bytes_ = 0;
  std::uint64_t documents_ = 0;
  bool has_retracted_ = false;  ///< There may be groups without documents, and it can be told which.

  ValueExpression::Scratch scratch_;
  bool may_wait_;  ///< Adding to the states cannot fail and needs no text of the document.
  std::vector<Waiting> waiting_;
  std::vector<ScalarView> inputs_;  ///< Of the documents that wait, one after the other, and of the one that comes.
  std::string keys_;
  std::unique_ptr<Aligned[]> alone_;  ///< Room for the states of one document.
  std::string encoded_;
  std::string encoded_empty_;
};

}  // namespace fjord::mapreduce
