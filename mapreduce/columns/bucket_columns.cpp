#include "columns/bucket_columns.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fjord/common/check.h"
#include "fjord/common/hash.h"

namespace fjord::mapreduce {
namespace {

using Kind = ScalarView::Kind;

/// Integers up to this one are the same as floating-point numbers.
constexpr std::int64_t kExactMax = std::int64_t{1} << 53;

constexpr std::size_t kSlotsMin = 64;
/// Bytes of keys that are allocated together.
constexpr std::size_t kKeysMin = 256;
constexpr std::size_t kKeysMax = std::size_t{64} << 10;

bool is_exact_number(const ScalarView& value) {
  return value.kind != Kind::Integer || (value.integer >= -kExactMax && value.integer <= kExactMax);
}

template <typename T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.capacity() * sizeof(T);
}

}  // namespace

ScalarView Column::at(std::size_t row) const {
  if (form_ == Form::Dictionary) return dictionary_[codes_[row]].value;
  ScalarView value;
  if (form_ == Form::Numbers) {
    if (std::isnan(numbers_[row])) return value;
    value.kind = Kind::Double;
    value.number = numbers_[row];
    return canonical(value);
  }
  if (has_absent_ && absent_[row]) return value;
  value.kind = Kind::Integer;
  value.integer = integers_[row];
  return value;
}

void Column::append_key(std::size_t row, std::string& key) const {
  if (form_ == Form::Dictionary) {
    key += dictionary_[codes_[row]].key;
  } else {
    put_scalar(key, at(row));
  }
}

std::size_t Column::bytes() const {
  return bytes_of(integers_) + absent_.capacity() / 8 + bytes_of(numbers_) + bytes_of(codes_) + bytes_of(dictionary_) +
         keys_bytes_;
}

void ColumnBuilder::add(const ScalarView& value) {
  if (column_.form_ == Column::Form::Integers && !add_integer(value)) become_numbers();
  if (column_.form_ == Column::Form::Numbers && !add_number(value)) become_dictionary();
  if (column_.form_ == Column::Form::Dictionary) add_code(value);
  ++column_.rows_;
}

bool ColumnBuilder::add_integer(const ScalarView& value) {
  if (value.kind != Kind::Integer && value.kind != Kind::Absent) return false;
  const bool is_absent = value.kind == Kind::Absent;
  if (is_absent && !std::exchange(column_.has_absent_, true)) column_.absent_.resize(column_.rows_);
  if (column_.has_absent_) column_.absent_.push_back(is_absent);
  column_.integers_.push_back(value.integer);
  return true;
}

bool ColumnBuilder::add_number(const ScalarView& value) {
  if (value.kind == Kind::String || !is_exact_number(value)) return false;
  column_.numbers_.push_back(value.kind == Kind::Absent ? std::numeric_limits<double>::quiet_NaN() : as_double(value));
  return true;
}

void ColumnBuilder::add_code(const ScalarView& value) {
  key_.clear();
  put_scalar(key_, value);
  column_.codes_.push_back(code_of(key_));
}

std::uint32_t ColumnBuilder::code_of(std::string_view key) {
  auto& entries = column_.dictionary_;
  if (entries.size() * 5 >= slots_.size() * 3) grow();
  const std::uint64_t hash = hash64(key);
  std::size_t at = hash & (slots_.size() - 1);
  for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
    const Column::Entry& entry = entries[slots_[at] - 1];
    if (entry.hash == hash && entry.key == key) return slots_[at] - 1;
  }
  Column::Entry& entry = entries.emplace_back();
  entry.key = keep(key);
  entry.hash = hash;
  ByteReader in(entry.key);
  FJORD_CHECK(read_scalar(in, entry.value));
  slots_[at] = static_cast<std::uint32_t>(entries.size());
  return slots_[at] - 1;
}

std::string_view ColumnBuilder::keep(std::string_view key) {
  if (key.size() > free_bytes_) {
    const std::size_t room = std::max(key.size(), std::clamp(column_.keys_bytes_, kKeysMin, kKeysMax));
    free_ = column_.keys_.emplace_back(std::make_unique_for_overwrite<char[]>(room)).get();
    free_bytes_ = room;
    column_.keys_bytes_ += room;
  }
  char* const kept = std::exchange(free_, free_ + key.size());
  free_bytes_ -= key.size();
  std::copy(key.begin(), key.end(), kept);
  return {kept, key.size()};
}

void ColumnBuilder::grow() {
  slots_.assign(std::max(kSlotsMin, slots_.size() * 2), 0);
  std::uint32_t number = 0;
  for (const Column::Entry& entry : column_.dictionary_) {
    std::size_t at = entry.hash & (slots_.size() - 1);
    while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = ++number;
  }
}

void ColumnBuilder::become_numbers() {
  Column before = std::exchange(column_, {});
  column_.form_ = Column::Form::Numbers;
  for (std::size_t row = 0; row < before.rows_; ++row) {
    if (!add_number(before.at(row))) {
      // An integer that is no floating-point number: only a dictionary can hold it beside other numbers.
      column_ = std::move(before);
      become_dictionary();
      return;
    }
  }
  column_.rows_ = before.rows_;
}

void ColumnBuilder::become_dictionary() {
  const Column before = std::exchange(column_, {});
  column_.form_ = Column::Form::Dictionary;
  for (std::size_t row = 0; row < before.rows_; ++row) add_code(before.at(row));
  column_.rows_ = before.rows_;
}

std::size_t ColumnBuilder::bytes() const { return column_.bytes() + bytes_of(slots_); }

Column ColumnBuilder::finish() {
  column_.integers_.shrink_to_fit();
  column_.absent_.shrink_to_fit();
  column_.numbers_.shrink_to_fit();
  column_.codes_.shrink_to_fit();
  column_.dictionary_.shrink_to_fit();
  return std::move(column_);
}

std::size_t BucketColumns::bytes() const {
  std::size_t bytes = sizeof(*this) + columns->capacity() * sizeof(Column);
  for (const Column& column : *columns) bytes += column.bytes();
  if (content.others != nullptr) bytes += bytes_of(*content.others);
  return bytes;
}

std::size_t ColumnsBuilder::bytes() const {
  std::size_t bytes = 0;
  for (const ColumnBuilder& column : columns_) bytes += column.bytes();
  return bytes;
}

BucketColumns ColumnsBuilder::finish(std::uint64_t read_bytes) {
  BucketColumns made;
  made.documents = columns_.front().rows();
  made.read_bytes = read_bytes;
  std::vector<Column> columns;
  columns.reserve(columns_.size());
  for (ColumnBuilder& column : columns_) {
    FJORD_CHECK(column.rows() == made.documents);
    columns.push_back(column.finish());
  }
  made.columns = std::make_shared<const std::vector<Column>>(std::move(columns));
  return made;
}

}  // namespace fjord::mapreduce
