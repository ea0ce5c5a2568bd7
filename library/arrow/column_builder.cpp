#include "arrow/column_builder.h"

#include <algorithm>
#include <fmt/format.h>

#include "arrow/arrow_memory.h"
#include "fjord/common/coding.h"
#include "fjord/document/document_format.h"
#include "fjord/document/validate_fields.h"

namespace fjord {
namespace {

/// Numbers whose wire form is that of Arrow.
class FixedBuilder : public ColumnBuilder {
 public:
  explicit FixedBuilder(TypeTag tag) : tag_(tag), size_(fixed_size(tag)) {}

  bool append(const FieldSlice& value) override {
    if (value.tag != tag_ || value.bytes.size() != size_) return false;
    values_ += value.bytes;
    valid_.add(true);
    return true;
  }
  void append_null() override {
    values_.append(size_, '\0');
    valid_.add(false);
  }
  void finish(ArrowArray* out) override { export_column({std::exchange(values_, {})}, {}, out); }

 private:
  TypeTag tag_;
  std::size_t size_;
  std::string values_;
};

class BoolBuilder : public ColumnBuilder {
 public:
  bool append(const FieldSlice& value) override {
    if (value.tag != TypeTag::Bool) return false;
    add(value.as_bool());
    valid_.add(true);
    return true;
  }
  void append_null() override {
    add(false);
    valid_.add(false);
  }
  void finish(ArrowArray* out) override { export_column({std::exchange(bits_, {})}, {}, out); }

 private:
  void add(bool bit) {
    if (rows() / 8 >= bits_.size()) bits_.push_back('\0');
    if (bit) bits_[rows() / 8] = static_cast<char>(bits_[rows() / 8] | 1 << rows() % 8);
  }
  std::string bits_;
};

/// Offsets of lists and maps: the number of elements before each row.
class Offsets {
 public:
  void add(std::size_t elements) {
    if (bytes_.empty()) put_fixed(bytes_, std::int32_t{0});
    put_fixed(bytes_, static_cast<std::int32_t>(elements));
  }
  std::string take() {
    if (bytes_.empty()) put_fixed(bytes_, std::int32_t{0});
    return std::exchange(bytes_, {});
  }

 private:
  std::string bytes_;
};

class ListBuilder : public ColumnBuilder {
 public:
  explicit ListBuilder(const DataType& type) : element_(make(*type.element())) {}

  bool append(const FieldSlice& value) override {
    if (value.tag != TypeTag::Array) return false;
    ElementCursor at(value);
    while (at.next()) {
      if (!element_->append(at.value())) return false;
    }
    add_row(true);
    return at.ok();
  }
  void append_null() override { add_row(false); }
  void finish(ArrowArray* out) override {
    std::vector<ArrowArray> children(1);
    element_->finish(&children[0]);
    export_column({offsets_.take()}, std::move(children), out);
  }

 private:
  void add_row(bool is_valid) {
    offsets_.add(element_->rows());
    valid_.add(is_valid);
  }
  std::unique_ptr<ColumnBuilder> element_;
  Offsets offsets_;
};

/// Maps, and weighted sets as maps from element to weight.
class MapBuilder : public ColumnBuilder {
 public:
  explicit MapBuilder(const DataType& type)
      : tag_(type.tag()),
        key_(make(type.tag() == TypeTag::Map ? *type.key() : *type.element())),
        value_(make(type.tag() == TypeTag::Map ? *type.element() : *DataType::primitive(TypeTag::Int))) {}

  bool append(const FieldSlice& value) override {
    if (value.tag != tag_) return false;
    ElementCursor at(value);
    while (at.next()) {
      if (!key_->append(at.key()) || !value_->append(at.value())) return false;
    }
    add_row(true);
    return at.ok();
  }
  void append_null() override { add_row(false); }
  void finish(ArrowArray* out) override {
    const auto entries = static_cast<std::int64_t>(key_->rows());
    ArrayMemory pairs{{{}}, std::vector<ArrowArray>(2)};
    key_->finish(&pairs.children[0]);
    value_->finish(&pairs.children[1]);
    std::vector<ArrowArray> children(1);
    export_array(std::move(pairs), entries, 0, &children[0]);
    export_column({offsets_.take()}, std::move(children), out);
  }

 private:
  void add_row(bool is_valid) {
    offsets_.add(key_->rows());
    valid_.add(is_valid);
  }
  TypeTag tag_;
  std::unique_ptr<ColumnBuilder> key_;
  std::unique_ptr<ColumnBuilder> value_;
  Offsets offsets_;
};

class StructBuilder : public ColumnBuilder {
 public:
  explicit StructBuilder(const DataType& type) {
    for (const Field& member : type.fields()) {
      members_.push_back(make(*member.type));
      router_.add(member, *members_.back());
    }
    router_.sort();
  }

  bool append(const FieldSlice& value) override {
    if (value.tag != TypeTag::Struct || !router_.route(value.bytes).empty()) return false;
    add_row(true);
    return true;
  }
  void append_null() override { add_row(false); }
  void finish(ArrowArray* out) override {
    std::vector<ArrowArray> children(members_.size());
    for (std::size_t i = 0; i < members_.size(); ++i) members_[i]->finish(&children[i]);
    export_column({}, std::move(children), out);
  }

 private:
  void add_row(bool is_valid) {
    valid_.add(is_valid);
    router_.fill(rows());
  }
  std::vector<std::unique_ptr<ColumnBuilder>> members_;
  FieldRouter router_;
};

}  // namespace

std::unique_ptr<ColumnBuilder> ColumnBuilder::make(const DataType& type) {
  switch (type.tag()) {
    case TypeTag::String:
    case TypeTag::Raw:
      return std::make_unique<TextBuilder>(type.tag());
    case TypeTag::Bool:
      return std::make_unique<BoolBuilder>();
    case TypeTag::Array:
      return std::make_unique<ListBuilder>(type);
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return std::make_unique<MapBuilder>(type);
    case TypeTag::Struct:
      return std::make_unique<StructBuilder>(type);
    default:
      return std::make_unique<FixedBuilder>(type.tag());
  }
}

void ColumnBuilder::export_column(std::vector<std::string> buffers, std::vector<ArrowArray> children, ArrowArray* out) {
  const auto rows = static_cast<std::int64_t>(valid_.rows());
  const auto nulls = static_cast<std::int64_t>(valid_.zeros());
  buffers.insert(buffers.begin(), valid_.take());
  export_array({std::move(buffers), std::move(children)}, rows, nulls, out);
}

bool TextBuilder::append(const FieldSlice& value) {
  if (value.tag != tag_) return false;
  append_text(value.bytes);
  return true;
}

void TextBuilder::append_text(std::string_view text) {
  if (offsets_.empty()) {
    offsets_.reserve((last_rows_ + 1) * sizeof(std::int32_t));
    bytes_.reserve(last_bytes_);
    put_fixed(offsets_, std::int32_t{0});
  }
  bytes_ += text;
  put_fixed(offsets_, static_cast<std::int32_t>(bytes_.size()));
  valid_.add(true);
}

void TextBuilder::append_null() {
  if (offsets_.empty()) put_fixed(offsets_, std::int32_t{0});
  put_fixed(offsets_, static_cast<std::int32_t>(bytes_.size()));
  valid_.add(false);
}

void TextBuilder::finish(ArrowArray* out) {
  if (offsets_.empty()) put_fixed(offsets_, std::int32_t{0});
  last_rows_ = rows();
  last_bytes_ = bytes_.size();
  export_column({std::exchange(offsets_, {}), std::exchange(bytes_, {})}, {}, out);
}

bool LongBuilder::append(const FieldSlice& value) {
  if (!value.is_integer()) return false;
  append_number(value.as_int64());
  return true;
}
void LongBuilder::append_number(std::int64_t number) {
  put_fixed(values_, number);
  valid_.add(true);
}
void LongBuilder::append_null() {
  put_fixed(values_, std::int64_t{0});
  valid_.add(false);
}
void LongBuilder::finish(ArrowArray* out) { export_column({std::exchange(values_, {})}, {}, out); }

void FieldRouter::add(const Field& field, ColumnBuilder& column) { targets_.push_back({field.id, &field, &column}); }

void FieldRouter::sort() {
  std::sort(targets_.begin(), targets_.end(), [](const Target& a, const Target& b) { return a.id < b.id; });
}

std::string FieldRouter::route(std::string_view fields) {
  FieldCursor at(fields);
  auto target = targets_.begin();
  while (at.next()) {
    while (target != targets_.end() && target->id < at.field_id()) ++target;
    if (target == targets_.end()) break;
    if (target->id != at.field_id() || !is_value_of(*target->field->type, at.slice())) continue;
    if (!target->column->append(at.slice())) {
      return fmt::format("field {} holds no value of type {}", target->field->name, target->field->type->name());
    }
  }
  return at.ok() ? std::string() : "the fields are malformed";
}

void FieldRouter::fill(std::size_t rows) {
  for (const Target& target : targets_) {
    if (target.column->rows() < rows) target.column->append_null();
  }
}

}  // namespace fjord
