#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "arrow/arrow_types.h"
#include "arrow/column_reader.h"
#include "fjord/common/coding.h"
#include "fjord/document/document_format.h"

namespace fjord {
namespace {

struct Range {
  std::int64_t first;
  std::int64_t last;  ///< Past the end.
};

/// Where the elements of each row of a list are.
class ListLayout {
 public:
  /// Errors: InvalidField if `from` is no list.
  static Result<ListLayout> of(const ArrowSchema& from, const DataType& type) {
    const std::string_view format = from.format;
    ListLayout layout;
    layout.is_large_ = format == "+L";
    if (format.starts_with("+w:")) {
      std::from_chars(format.data() + 3, format.data() + format.size(), layout.fixed_);
    } else if (format != "+l" && format != "+L" && format != "+m") {
      return Status(StatusCode::InvalidField,
                    fmt::format("Arrow's type {} has no values of type {}", arrow_type_name(format), type.name()));
    }
    return layout;
  }
  Range range(const ArrowArray& array, std::int64_t row) const {
    const std::int64_t at = array.offset + row;
    if (fixed_ >= 0) return {at * fixed_, (at + 1) * fixed_};
    if (is_large_) {
      const auto* offsets = static_cast<const std::int64_t*>(array.buffers[1]) + at;
      return {offsets[0], offsets[1]};
    }
    const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]) + at;
    return {offsets[0], offsets[1]};
  }

 private:
  bool is_large_ = false;
  std::int64_t fixed_ = -1;
};

/// Appends one element of a collection: a value with its length, unless its type has a fixed size.
Status append_element(const ColumnReader& reader, TypeTag tag, std::int64_t row, const char* what, std::string& out) {
  if (reader.is_null(row)) {
    return {StatusCode::InvalidField, fmt::format("null {}: documents have no null in collections", what)};
  }
  if (fixed_size(tag) > 0) return reader.append(row, out);
  std::string value;
  FJORD_TRY(reader.append(row, value));
  put_string(out, value);
  return Status::ok();
}

class ListReader : public ColumnReader {
 public:
  ListReader(ListLayout layout, TypeTag tag, std::unique_ptr<ColumnReader> element)
      : layout_(layout), tag_(tag), element_(std::move(element)) {}

  Status set(const ArrowArray& array) override {
    FJORD_TRY(ColumnReader::set(array));
    if (array.n_children != 1) return {StatusCode::InvalidArgument, "a list has no child"};
    return element_->set(*array.children[0]);
  }
  Status append(std::int64_t row, std::string& out) const override {
    const Range range = layout_.range(*array_, row);
    out.push_back(static_cast<char>(tag_));
    put_varint(out, static_cast<std::uint64_t>(range.last - range.first));
    for (std::int64_t i = range.first; i < range.last; ++i) {
      FJORD_TRY(append_element(*element_, tag_, i, "element", out));
    }
    return Status::ok();
  }

 private:
  ListLayout layout_;
  TypeTag tag_;
  std::unique_ptr<ColumnReader> element_;
};

/// Maps and weighted sets, from maps or from lists of structs with two members.
class MapReader : public ColumnReader {
 public:
  MapReader(ListLayout layout, const DataType& type, std::unique_ptr<ColumnReader> key,
            std::unique_ptr<ColumnReader> value)
      : layout_(layout),
        is_set_(type.tag() == TypeTag::WeightedSet),
        key_tag_(is_set_ ? type.element()->tag() : type.key()->tag()),
        value_tag_(is_set_ ? TypeTag::Int : type.element()->tag()),
        key_(std::move(key)),
        value_(std::move(value)) {}

  Status set(const ArrowArray& array) override {
    FJORD_TRY(ColumnReader::set(array));
    if (array.n_children != 1 || array.children[0]->n_children != 2) {
      return {StatusCode::InvalidArgument, "the entries of a map are not pairs"};
    }
    entries_ = array.children[0]->offset;
    FJORD_TRY(key_->set(*array.children[0]->children[0]));
    return value_->set(*array.children[0]->children[1]);
  }
  Status append(std::int64_t row, std::string& out) const override {
    const Range range = layout_.range(*array_, row);
    out.push_back(static_cast<char>(key_tag_));
    if (!is_set_) out.push_back(static_cast<char>(value_tag_));
    put_varint(out, static_cast<std::uint64_t>(range.last - range.first));
    for (std::int64_t i = range.first; i < range.last; ++i) {
      FJORD_TRY(append_element(*key_, key_tag_, entries_ + i, "key", out));
      FJORD_TRY(append_element(*value_, value_tag_, entries_ + i, "value", out));
    }
    return Status::ok();
  }

 private:
  ListLayout layout_;
  bool is_set_;
  TypeTag key_tag_;
  TypeTag value_tag_;
  std::unique_ptr<ColumnReader> key_;
  std::unique_ptr<ColumnReader> value_;
  std::int64_t entries_ = 0;  ///< Offset of the array of entries.
};

class StructReader : public ColumnReader {
 public:
  struct Member {
    const Field* field;
    std::int64_t child;
    std::unique_ptr<ColumnReader> reader;
  };
  explicit StructReader(std::vector<Member> members) : members_(std::move(members)) {
    std::sort(members_.begin(), members_.end(),
              [](const Member& a, const Member& b) { return a.field->id < b.field->id; });
  }

  Status set(const ArrowArray& array) override {
    FJORD_TRY(ColumnReader::set(array));
    for (const Member& member : members_) {
      if (member.child >= array.n_children) return {StatusCode::InvalidArgument, "a struct lacks a member"};
      FJORD_TRY(member.reader->set(*array.children[member.child]));
    }
    return Status::ok();
  }
  Status append(std::int64_t row, std::string& out) const override {
    const std::int64_t at = array_->offset + row;
    for (const Member& member : members_) {
      if (member.reader->is_null(at)) continue;
      std::string value;
      FJORD_TRY(member.reader->append(at, value).with_context(member.field->name));
      put_fixed(out, member.field->id);
      out.push_back(static_cast<char>(member.field->type->tag()));
      put_string(out, value);
    }
    return Status::ok();
  }

 private:
  std::vector<Member> members_;
};

Result<std::unique_ptr<ColumnReader>> make_map_reader(const ArrowSchema& from, const DataType& type) {
  FJORD_TRY_ASSIGN(const ListLayout layout, ListLayout::of(from, type));
  const ArrowSchema& entries = *from.children[0];
  if (std::string_view(entries.format) != "+s" || entries.n_children != 2) {
    return Status(StatusCode::InvalidField,
                  fmt::format("the elements of a list are values of {} only if they are structs with key and value",
                              type.name()));
  }
  const bool is_set = type.tag() == TypeTag::WeightedSet;
  const auto weight = DataType::primitive(TypeTag::Int);
  FJORD_TRY_ASSIGN(auto key, ColumnReader::make(*entries.children[0], is_set ? *type.element() : *type.key()));
  FJORD_TRY_ASSIGN(auto value, ColumnReader::make(*entries.children[1], is_set ? *weight : *type.element()));
  return std::unique_ptr<ColumnReader>(std::make_unique<MapReader>(layout, type, std::move(key), std::move(value)));
}

Result<std::unique_ptr<ColumnReader>> make_struct_reader(const ArrowSchema& from, const DataType& type) {
  std::vector<StructReader::Member> members;
  for (std::int64_t i = 0; i < from.n_children; ++i) {
    const Field* field = type.field(from.children[i]->name);
    if (field == nullptr) {
      return Status(StatusCode::InvalidField,
                    fmt::format("{} has no member \"{}\"", type.name(), from.children[i]->name));
    }
    FJORD_TRY_ASSIGN(auto reader, ColumnReader::make(*from.children[i], *field->type));
    members.push_back({field, i, std::move(reader)});
  }
  return std::unique_ptr<ColumnReader>(std::make_unique<StructReader>(std::move(members)));
}

}  // namespace

Result<std::unique_ptr<ColumnReader>> make_nested_reader(const ArrowSchema& from, const DataType& type) {
  if (type.tag() == TypeTag::Struct && std::string_view(from.format) == "+s") return make_struct_reader(from, type);
  if (type.tag() == TypeTag::Struct) {
    return Status(StatusCode::InvalidField,
                  fmt::format("Arrow's type {} has no values of type {}", arrow_type_name(from.format), type.name()));
  }
  if (type.tag() != TypeTag::Array) return make_map_reader(from, type);
  FJORD_TRY_ASSIGN(const ListLayout layout, ListLayout::of(from, type));
  FJORD_TRY_ASSIGN(auto element, ColumnReader::make(*from.children[0], *type.element()));
  return std::unique_ptr<ColumnReader>(std::make_unique<ListReader>(layout, type.element()->tag(), std::move(element)));
}

}  // namespace fjord
