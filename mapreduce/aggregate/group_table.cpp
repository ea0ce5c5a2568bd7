#include "group_table.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "columns/column_cache.h"
#include "fjord/common/check.h"
#include "fjord/common/hash.h"
#include "task/task.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kAlignment = 16;
constexpr std::size_t kChunkMin = std::size_t{4} << 10;
constexpr std::size_t kChunkMax = std::size_t{256} << 10;
constexpr std::size_t kSlotsMin = 64;

constexpr std::size_t kWaitingMax = 16;
constexpr std::size_t kRowsAtOnce = 1024;
/// Bytes of rows that a table counts together, as tables on several threads count with one RowBudget.
constexpr std::size_t kCountedAtOnce = std::size_t{16} << 10;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Compares keys. Most are short, so that a call of memcmp would cost more than the comparison.
bool is_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  if (a.size() > sizeof(std::uint64_t)) return a == b;
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    left = (left << 8) | static_cast<unsigned char>(a[i]);
    right = (right << 8) | static_cast<unsigned char>(b[i]);
  }
  return left == right;
}

/// True if all aggregates are counts, sums, averages or extremes of numbers: adding to them cannot fail.
bool can_wait(const AggregatePlan& plan) {
  return std::all_of(plan.aggregates().begin(), plan.aggregates().end(), [&](const AggregatePlan::Aggregate& one) {
    if (one.function == AggregateFunction::Count || one.function == AggregateFunction::Sum ||
        one.function == AggregateFunction::Avg)
      return true;
    if (one.function != AggregateFunction::Min && one.function != AggregateFunction::Max) return false;
    const auto kind = plan.inputs()[static_cast<std::size_t>(one.input)].kind();
    return kind == ValueExpression::Kind::Integer || kind == ValueExpression::Kind::Number ||
           kind == ValueExpression::Kind::Bool;
  });
}

}  // namespace

/// Header of a group's record; the states and then the key follow it.
struct alignas(kAlignment) GroupTable::Record {
  std::uint64_t hash;
  std::uint32_t key_bytes;
  std::uint32_t key_offset;  ///< Bytes from the record's beginning.
};

GroupTable::GroupTable(std::shared_ptr<const AggregatePlan> plan)
    : plan_(std::move(plan)), states_(*plan_), may_wait_(can_wait(*plan_)) {
  inputs_.resize(plan_->inputs().size() * kWaitingMax);
  waiting_.reserve(kWaitingMax);
}

GroupTable::~GroupTable() { clear(); }

void GroupTable::clear() {
  for (Record* record : records_) states_.destroy(states_of(record));
  std::vector<Record*>().swap(records_);
  std::vector<Slot>().swap(slots_);
  chunks_.clear();
  waiting_.clear();
  keys_.clear();
  free_ = nullptr;
  free_bytes_ = chunk_bytes_ = heap_bytes_ = 0;
  has_retracted_ = false;
}

std::size_t GroupTable::bytes() const {
  return chunk_bytes_ - free_bytes_ + heap_bytes_ + records_.capacity() * sizeof(Record*) +
         slots_.size() * sizeof(Slot);
}

char* GroupTable::states_of(Record* record) const { return reinterpret_cast<char*>(record) + sizeof(Record); }

std::string_view GroupTable::key_of(const Record& record) {
  return {reinterpret_cast<const char*>(&record) + record.key_offset, record.key_bytes};
}

char* GroupTable::allocate(std::size_t bytes) {
  bytes = aligned(bytes);
  if (bytes > free_bytes_) {
    const std::size_t chunk = std::max(bytes, std::clamp(chunk_bytes_, kChunkMin, kChunkMax));
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk));  // memory from operator new is aligned to 16
    chunk_bytes_ += chunk;
    free_ = chunks_.back().get();
    free_bytes_ = chunk;
  }
  free_bytes_ -= bytes;
  return std::exchange(free_, free_ + bytes);
}

void GroupTable::grow() {
  const std::size_t size = std::max(kSlotsMin, slots_.size() * 2);
  slots_.assign(size, {});
  for (Record* record : records_) {
    std::size_t at = record->hash & (size - 1);
    while (slots_[at].record != nullptr) at = (at + 1) & (size - 1);
    slots_[at] = {record->hash, record};
  }
}

char* GroupTable::find(std::string_view key, std::uint64_t hash) {
  if (records_.size() * 5 >= slots_.size() * 3) grow();
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].record != nullptr; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && is_equal(key_of(*slots_[at].record), key)) return states_of(slots_[at].record);
  }
  const std::size_t key_offset = sizeof(Record) + states_.size();
  char* const bytes = allocate(key_offset + key.size());
  auto* const record =
      new (bytes) Record{hash, static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(key_offset)};
  states_.construct(states_of(record));
  std::copy(key.begin(), key.end(), bytes + key_offset);
  records_.push_back(record);
  slots_[at] = {hash, record};
  return states_of(record);
}

void GroupTable::evaluate(const DocumentView& document, ScalarView* inputs) {
  ValueExpression::clear(scratch_);
  for (const ValueExpression& group : plan_->groups()) {
    put_scalar(keys_, canonical(group.evaluate(document, scratch_)));
  }
  for (std::size_t i = 0; i < plan_->inputs().size(); ++i) {
    inputs[i] = canonical(plan_->inputs()[i].evaluate(document, scratch_));
  }
}

void GroupTable::record_values(const DocumentView& document) {
  ValueExpression::clear(scratch_);
  std::size_t column = 0;
  for (const auto* const list : {&plan_->groups(), &plan_->inputs()}) {
    for (const ValueExpression& value : *list) recorder_->add(column++, canonical(value.evaluate(document, scratch_)));
  }
}

std::vector<std::string> GroupTable::values() const {
  std::vector<std::string> texts;
  if (states_.may_fail()) return texts;
  for (const auto* const list : {&plan_->groups(), &plan_->inputs()}) {
    for (const ValueExpression& value : *list) texts.push_back(value.to_string());
  }
  return texts;
}

Status GroupTable::map_columns(const FoundColumns& columns) {
  settle();
  const std::size_t documents = columns.columns->documents;
  documents_ += documents;
  groups_of_codes_.clear();
  std::array<char*, kRowsAtOnce> states;
  for (std::size_t first = 0; first < documents; first += kRowsAtOnce) {
    const std::span<char*> some(states.data(), std::min(kRowsAtOnce, documents - first));
    find_groups(columns, first, some);
    for (std::size_t i = 0; i < plan_->aggregates().size(); ++i) {
      const int input = plan_->aggregates()[i].input;
      const std::size_t value = plan_->group_count() + static_cast<std::size_t>(std::max(input, 0));
      states_.add_rows(i, some, input < 0 ? nullptr : &columns.of(value), first, heap_bytes_);
    }
  }
  return Status::ok();
}

void GroupTable::find_groups(const FoundColumns& columns, std::size_t first, std::span<char*> states) {
  if (plan_->group_count() == 1 && columns.of(0).has_dictionary()) {
    const Column& column = columns.of(0);
    if (groups_of_codes_.empty()) {
      constexpr std::size_t kAhead = 8;
      const auto& entries = column.dictionary();
      for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i + kAhead < entries.size()) prefetch_slot(entries[i + kAhead].hash);
        groups_of_codes_.push_back(find(entries[i].key, entries[i].hash));
      }
    }
    for (std::size_t i = 0; i < states.size(); ++i) states[i] = groups_of_codes_[column.code(first + i)];
    return;
  }
  for (std::size_t begin = 0; begin < states.size(); begin += kWaitingMax) {
    const std::size_t end = std::min(begin + kWaitingMax, states.size());
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t key_begin = keys_.size();
      for (std::size_t group = 0; group < plan_->group_count(); ++group) columns.of(group).append_key(first + i, keys_);
      wait_for(key_begin);
    }
    for (const Waiting& row : waiting_) prefetch_record(row.hash);
    for (std::size_t i = begin; i < end; ++i) states[i] = find(key_of(waiting_[i - begin]), waiting_[i - begin].hash);
    waiting_.clear();
    keys_.clear();
  }
}

void GroupTable::wait_for(std::size_t key_begin) {
  const std::string_view key = std::string_view(keys_).substr(key_begin);
  const std::uint64_t hash = hash64(key);
  prefetch_slot(hash);
  waiting_.push_back({hash, static_cast<std::uint32_t>(key_begin), static_cast<std::uint32_t>(key.size())});
}

std::string_view GroupTable::key_of(const Waiting& waiting) const {
  return std::string_view(keys_).substr(waiting.key_begin, waiting.key_bytes);
}

Status GroupTable::map_alone(const DocumentView& document, std::string& tuples) {
  settle();
  ++documents_;
  evaluate(document, inputs_.data());
  if (alone_ == nullptr) alone_ = std::make_unique<Aligned[]>(states_.size() / sizeof(Aligned) + 1);
  char* const states = alone_[0].bytes;
  states_.construct(states);
  std::size_t heap = 0;
  const Status status = states_.add(states, {inputs_.data(), plan_->inputs().size()}, heap);
  if (status) {
    encoded_.clear();
    states_.encode(states, encoded_);
    put_string(tuples, keys_);
    put_string(tuples, encoded_);
  }
  states_.destroy(states);
  keys_.clear();
  return status;
}

bool GroupTable::retract(std::string_view key, std::string_view value) {
  settle();
  char* const states = find(key, hash64(key));
  const std::optional<std::uint64_t> documents = states_.documents(states);
  if (documents) has_retracted_ = true;
  // The removed document was the last one of the group: the group gets new, empty states.
  // `heap_bytes_` still counts what the old states had on the heap.
  if (documents == 1) {
    states_.destroy(states);
    states_.construct(states);
    return true;
  }
  if (!states_.retract(states, value, heap_bytes_)) return false;
  if (documents) return true;
  // No aggregate counts documents. If all states are empty now, the group may have no documents left: return false.
  encoded_.clear();
  states_.encode(states, encoded_);
  if (encoded_empty_.empty()) {
    if (alone_ == nullptr) alone_ = std::make_unique<Aligned[]>(states_.size() / sizeof(Aligned) + 1);
    states_.construct(alone_[0].bytes);
    states_.encode(alone_[0].bytes, encoded_empty_);
    states_.destroy(alone_[0].bytes);
  }
  return encoded_ != encoded_empty_;
}

Status GroupTable::map(const DocumentView& document) {
  if (recorder_ != nullptr) {
    record_values(document);
    return Status::ok();
  }
  ++documents_;
  const std::size_t key_begin = keys_.size();
  ScalarView* const inputs = inputs_.data() + waiting_.size() * plan_->inputs().size();
  evaluate(document, inputs);
  if (!may_wait_) {
    const Status status = states_.add(find(keys_, hash64(keys_)), {inputs, plan_->inputs().size()}, heap_bytes_);
    keys_.clear();
    return status;
  }
  wait_for(key_begin);
  if (waiting_.size() == kWaitingMax) settle();
  return Status::ok();
}

void GroupTable::settle() {
  for (const Waiting& document : waiting_) prefetch_record(document.hash);
  const ScalarView* inputs = inputs_.data();
  for (const Waiting& document : waiting_) {
    char* const group = find(key_of(document), document.hash);
    const Status status = states_.add(group, {inputs, plan_->inputs().size()}, heap_bytes_);
    FJORD_CHECK(status.is_ok());
    inputs += plan_->inputs().size();
  }
  waiting_.clear();
  keys_.clear();
}

Status GroupTable::merge(std::string_view key, std::string_view value) {
  settle();
  return states_.merge(find(key, hash64(key)), value, heap_bytes_);
}

Status GroupTable::merge(std::span<const HashedTuple> tuples) {
  constexpr std::size_t kSlotsAhead = 16;
  constexpr std::size_t kRecordsAhead = 8;
  settle();
  for (std::size_t i = 0; i < tuples.size(); ++i) {
    if (i + kSlotsAhead < tuples.size()) prefetch_slot(tuples[i + kSlotsAhead].hash);
    if (i + kRecordsAhead < tuples.size()) prefetch_record(tuples[i + kRecordsAhead].hash);
    FJORD_TRY(states_.merge(find(tuples[i].key, tuples[i].hash), tuples[i].value, heap_bytes_));
  }
  return Status::ok();
}

class GroupTable::Source final : public TupleSource {
 public:
  Source(const GroupTable& table, std::uint32_t destinations)
      : table_(table), destinations_(destinations), records_(table.records_) {
    if (destinations == 0) return;
    std::sort(records_.begin(), records_.end(), [destinations](const Record* a, const Record* b) {
      const std::uint64_t left = a->hash % destinations;
      const std::uint64_t right = b->hash % destinations;
      return left != right ? left < right : key_of(*a) < key_of(*b);
    });
  }

  Result<bool> next(Tuple& tuple) override {
    if (table_.has_retracted_) skip_empty();
    if (at_ == records_.size()) return false;
    Record* const record = records_[at_++];
    tuple.destination = destinations_ == 0 ? 0 : static_cast<std::uint32_t>(record->hash % destinations_);
    tuple.key = key_of(*record);
    value_.clear();
    table_.states_.encode(table_.states_of(record), value_);
    tuple.values.assign(1, value_);
    return true;
  }

 private:
  void skip_empty() {
    while (at_ < records_.size() && table_.states_.documents(table_.states_of(records_[at_])) == 0) ++at_;
  }

  const GroupTable& table_;
  std::uint32_t destinations_;
  std::vector<Record*> records_;
  std::size_t at_ = 0;
  std::string value_;
};

std::unique_ptr<TupleSource> GroupTable::drain(std::uint32_t destinations) {
  settle();
  return std::make_unique<Source>(*this, destinations);
}

namespace {

Status write_key_values(const AggregatePlan& plan, std::string_view key, JsonWriter& json) {
  ByteReader in(key);
  for (const AggregateColumn& column : std::span(plan.columns()).first(plan.group_count())) {
    ScalarView value;
    if (!read_scalar(in, value)) return Status(StatusCode::Corruption, "malformed key of an aggregation");
    write_scalar(json, value, column.kind == ColumnKind::Bool);
  }
  if (!in.at_end()) return Status(StatusCode::Corruption, "malformed key of an aggregation");
  return Status::ok();
}

}  // namespace

Status GroupTable::reduce(Application&, RowBudget& budget, JobRows& rows) {
  settle();
  std::vector<Slot>().swap(slots_);  // frees memory for the rows
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  std::string key;
  std::size_t counted = 0;
  for (Record* const record : records_) {
    buffer.Clear();
    json.Reset(buffer);
    json.StartArray();
    FJORD_TRY(write_key_values(*plan_, key_of(*record), json));
    key.assign(buffer.GetString(), buffer.GetSize());  // a row begins with its key
    key.push_back(']');
    states_.write(states_of(record), json);
    json.EndArray();
    const std::string_view row(buffer.GetString(), buffer.GetSize());
    FJORD_TRY_ASSIGN(const bool passes, plan_->passes_having(row));
    if (!passes) continue;
    if (!is_plain_utf8(key)) key = printable_key(key);
    rows.add(key, row);
    if (rows.bytes_while_sorted() - counted >= kCountedAtOnce) FJORD_TRY(budget.take(rows, counted));
  }
  return budget.take(rows, counted);
}

Status GroupTable::write_row(const AggregatePlan& plan, const AggregateStates& states, std::string_view key,
                             const char* group, std::string& row) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartArray();
  FJORD_TRY(write_key_values(plan, key, json));
  states.write(group, json);
  json.EndArray();
  row.assign(buffer.GetString(), buffer.GetSize());
  return Status::ok();
}

Status GroupTable::write_key(const AggregatePlan& plan, std::string_view key, std::string& text) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartArray();
  FJORD_TRY(write_key_values(plan, key, json));
  json.EndArray();
  text.assign(buffer.GetString(), buffer.GetSize());
  return Status::ok();
}

}  // namespace fjord::mapreduce
