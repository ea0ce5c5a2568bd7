#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aggregate_state.h"
#include "task/accumulator.h"

namespace fjord::mapreduce {

/// The groups of an aggregation: open addressing over records in an arena. Each record has a key and the states of the
/// aggregates. A document of a known group allocates nothing unless a sketch grows.
///
/// Tables are larger than processor caches, so the table prefetches memory: a few documents wait, with their keys and
/// the values for their groups, until they are added together.
class GroupTable final : public Accumulator {
 public:
  explicit GroupTable(std::shared_ptr<const AggregatePlan> plan);
  ~GroupTable() override;
  GroupTable(const GroupTable&) = delete;
  GroupTable& operator=(const GroupTable&) = delete;

  Status map(const DocumentView& document) override;
  std::vector<std::string> values() const override;
  void record(ColumnsBuilder* columns) override { recorder_ = columns; }
  Status map_columns(const FoundColumns& columns) override;
  Status map_alone(const DocumentView& document, std::string& tuples) override;
  bool retract(std::string_view key, std::string_view value) override;
  Status merge(std::string_view key, std::string_view value) override;
  Status merge(std::span<const HashedTuple> tuples) override;
  std::uint64_t tuples() const override { return documents_; }
  std::size_t groups() const override { return records_.size(); }
  std::size_t bytes() const override;
  void clear() override;
  std::unique_ptr<TupleSource> drain(std::uint32_t destinations) override;
  Status reduce(Application& application, RowBudget& budget, JobRows& rows) override;

  /// Writes the row of a group as a JSON array: the values of its key, then those of its aggregates. Errors: Corruption
  /// if the key is malformed.
  static Status write_row(const AggregatePlan& plan, const AggregateStates& states, std::string_view key,
                          const char* group, std::string& row);
  /// Writes the values of a key as a JSON array. Errors: Corruption.
  static Status write_key(const AggregatePlan& plan, std::string_view key, std::string& text);

 private:
  static constexpr std::size_t kCacheLine = 64;

  struct Record;
  struct Slot {
    std::uint64_t hash = 0;
    Record* record = nullptr;  ///< Null: the slot is free.
  };
  /// A document that waits for its group. Until settle() its values are in `inputs_`.
  struct Waiting {
    std::uint64_t hash = 0;
    std::uint32_t key_begin = 0;  ///< Where its key begins in `keys_`.
    std::uint32_t key_bytes = 0;
  };
  class Source;
  struct alignas(16) Aligned {
    char bytes[16];
  };

  /// Returns the states of the groups of rows `first` and later, as many as `states` has.
  void find_groups(const FoundColumns& columns, std::size_t first, std::span<char*> states);
  /// Appends the document's key to `keys_` and the values for its group to `inputs`.
  void evaluate(const DocumentView& document, ScalarView* inputs);
  /// Adds the values of a document to the columns.
  void record_values(const DocumentView& document);
  /// Returns the states of the group with that key; creates the group if there is none.
  char* find(std::string_view key, std::uint64_t hash);
  // Always inlined: g++ removes calls of a function that only prefetches, as it takes them to have no effect.
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
  /// Lets the document wait whose key begins there in `keys_` and ends with it.
  void wait_for(std::size_t key_begin);
  std::string_view key_of(const Waiting& waiting) const;
  /// Adds the waiting documents to their groups.
  void settle();
  char* states_of(Record* record) const;
  static std::string_view key_of(const Record& record);
  char* allocate(std::size_t bytes);
  void grow();

  std::shared_ptr<const AggregatePlan> plan_;
  AggregateStates states_;
  std::vector<Slot> slots_;  ///< The size is a power of two.
  std::vector<Record*> records_;
  std::vector<std::unique_ptr<char[]>> chunks_;
  char* free_ = nullptr;
  std::size_t free_bytes_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t heap_bytes_ = 0;
  std::uint64_t documents_ = 0;
  bool has_retracted_ = false;  ///< Documents are counted and some were removed: groups without documents may exist.

  ColumnsBuilder* recorder_ = nullptr;
  std::vector<char*> groups_of_codes_;  ///< map_columns(), one text in the key: the states by number in the dictionary.

  ValueExpression::Scratch scratch_;
  bool may_wait_;  ///< Documents may wait: adding them cannot fail, and the states keep no text of them.
  std::vector<Waiting> waiting_;
  /// Values of the waiting documents, one document after the other, and of the next document.
  std::vector<ScalarView> inputs_;
  std::string keys_;
  std::unique_ptr<Aligned[]> alone_;  ///< Memory for the states of a single document, outside of all groups.
  std::string encoded_;
  std::string encoded_empty_;
};

}  // namespace fjord::mapreduce
