#include "group_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

constexpr std::size_t kAlignment = 16;
constexpr std::size_t kChunkMin = std::size_t{4} << 10;
constexpr std::size_t kChunkMax = std::size_t{256} << 10;
constexpr std::size_t kSlotsMin = 64;

std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

/// Followed by the states and then by the key.
struct alignas(kAlignment) GroupTable::Record {
  std::uint64_t hash;
  std::uint32_t key_bytes;
  std::uint32_t key_offset;  ///< From the record's beginning.
};

GroupTable::GroupTable(std::shared_ptr<const AggregatePlan> plan, GroupTableSabotage sabotage)
    : plan_(std::move(plan)), sabotage_(sabotage), states_(*plan_, sabotage.states) {
  inputs_.resize(plan_->inputs().size());
}

GroupTable::~GroupTable() { clear(); }

void GroupTable::clear() {
  for (Record* record : records_) states_.destroy(states_of(record));
  std::vector<Record*>().swap(records_);
  std::vector<Slot>().swap(slots_);
  chunks_.clear();
  free_ = nullptr;
  free_bytes_ = chunk_bytes_ = heap_bytes_ = 0;
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
    chunks_.push_back(std::make_unique_for_overwrite<char[]>(chunk));  // aligned as operator new does: to 16
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

char* GroupTable::find(std::string_view key) {
  if (records_.size() * 5 >= slots_.size() * 3) grow();
  const std::uint64_t hash = hash64(key);
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at].record != nullptr; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && key_of(*slots_[at].record) == key) return states_of(slots_[at].record);
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

Status GroupTable::map(const DocumentView& document) {
  ++documents_;
  ValueExpression::clear(scratch_);
  key_.clear();
  bool any_absent = false;
  for (const ValueExpression& group : plan_->groups()) {
    const ScalarView value = canonical(group.evaluate(document, scratch_));
    any_absent = any_absent || value.kind == ScalarView::Kind::Absent;
    put_scalar(key_, value);
  }
  if (any_absent && sabotage_.forget_null_groups) return Status::ok();
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    inputs_[i] = canonical(plan_->inputs()[i].evaluate(document, scratch_));
  }
  return states_.add(find(key_), inputs_, heap_bytes_);
}

Status GroupTable::merge(std::string_view key, std::string_view value) {
  return states_.merge(find(key), value, heap_bytes_);
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
  const GroupTable& table_;
  std::uint32_t destinations_;
  std::vector<Record*> records_;
  std::size_t at_ = 0;
  std::string value_;
};

std::unique_ptr<TupleSource> GroupTable::drain(std::uint32_t destinations) {
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
