#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "fjord/document/document.h"
#include "fjord/document/validate_fields.h"
#include "wire.h"

namespace fjord {
namespace {

Status corrupt(std::string what) { return {StatusCode::Corruption, std::move(what)}; }

std::int64_t clamp_to_int64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return std::numeric_limits<std::int64_t>::max();
  if (value < -9223372036854775808.0) return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

Result<FieldValue> read_value(const FieldSlice& slice, int depth_left);

Result<FieldValue> read_collection(const FieldSlice& slice, int depth_left) {
  ArrayValue array;
  WeightedSetValue set;
  MapValue map;
  ElementCursor at(slice);
  while (at.next()) {
    if (slice.tag == TypeTag::WeightedSet) {
      FJORD_TRY_ASSIGN(FieldValue element, read_value(at.key(), depth_left));
      set.elements.emplace_back(std::move(element), static_cast<std::int32_t>(at.value().as_int64()));
      continue;
    }
    FJORD_TRY_ASSIGN(FieldValue element, read_value(at.value(), depth_left));
    if (slice.tag == TypeTag::Array) {
      array.elements.push_back(std::move(element));
    } else {
      FJORD_TRY_ASSIGN(FieldValue key, read_value(at.key(), depth_left));
      map.entries.emplace_back(std::move(key), std::move(element));
    }
  }
  if (!at.ok()) return corrupt(fmt::format("malformed {}, element {}", to_string(slice.tag), at.index() + 1));
  if (slice.tag == TypeTag::Array) return FieldValue(std::move(array));
  if (slice.tag == TypeTag::WeightedSet) return FieldValue(std::move(set));
  return FieldValue(std::move(map));
}

Result<FieldValue> read_struct(const FieldSlice& slice, int depth_left) {
  StructValue members;
  FieldCursor at(slice.bytes);
  while (at.next()) {
    if (!members.members.empty() && members.members.back().first >= at.field_id()) {
      return corrupt("the fields of a struct are out of order");
    }
    FJORD_TRY_ASSIGN(FieldValue member, read_value(at.slice(), depth_left));
    members.members.emplace_back(at.field_id(), std::move(member));
  }
  if (!at.ok()) return corrupt("malformed struct");
  return FieldValue(std::move(members));
}

Result<FieldValue> read_value(const FieldSlice& slice, int depth_left) {
  // Cursors check the size of scalars. This checks slices that a caller made itself.
  if (fixed_size(slice.tag) != 0 && slice.bytes.size() != fixed_size(slice.tag)) {
    return corrupt(fmt::format("{} of {} bytes", to_string(slice.tag), slice.bytes.size()));
  }
  const char* at = slice.bytes.data();
  switch (slice.tag) {
    case TypeTag::None:
      break;
    case TypeTag::String:
      return FieldValue(slice.bytes);
    case TypeTag::Int:
      return FieldValue(load_fixed<std::int32_t>(at));
    case TypeTag::Long:
      return FieldValue(load_fixed<std::int64_t>(at));
    case TypeTag::Float:
      return FieldValue(load_fixed<float>(at));
    case TypeTag::Double:
      return FieldValue(load_fixed<double>(at));
    case TypeTag::Bool:
      return FieldValue(*at != 0);
    case TypeTag::Byte:
      return FieldValue(load_fixed<std::int8_t>(at));
    case TypeTag::Raw:
      return FieldValue(RawValue{std::string(slice.bytes)});
    case TypeTag::Array:
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      if (depth_left == 0) return corrupt("values nested too deep");
      return read_collection(slice, depth_left - 1);
    case TypeTag::Struct:
      if (depth_left == 0) return corrupt("values nested too deep");
      return read_struct(slice, depth_left - 1);
  }
  return corrupt("unknown kind of value");
}

}  // namespace

std::optional<HeaderPrefix> read_header_prefix(std::string_view header) {
  if (header.size() <= kDocumentIdLengthOffset) return std::nullopt;
  if (static_cast<std::uint8_t>(header[0]) != kDocumentFormatVersion) return std::nullopt;
  HeaderPrefix prefix{load_fixed<std::uint32_t>(header.data() + 1), {}, {}};
  std::string_view rest = header.substr(kDocumentIdLengthOffset);
  std::uint64_t length = 0;
  if (!take_varint(rest, length) || length > rest.size()) return std::nullopt;
  prefix.id = rest.substr(0, length);
  prefix.fields = rest.substr(length);
  return prefix;
}

std::string_view document_id_of_header(std::string_view header) {
  const auto prefix = read_header_prefix(header);
  return prefix ? prefix->id : std::string_view();
}

std::optional<FieldSlice> find_field(std::string_view fields, std::uint32_t field_id) {
  // Reads the fields here and not with FieldCursor, which would make a slice of each skipped field.
  constexpr std::size_t kFixedBytes = 4 + 1;
  while (fields.size() > kFixedBytes) {
    const auto found = load_fixed<std::uint32_t>(fields.data());
    const auto tag = static_cast<TypeTag>(fields[4]);
    fields.remove_prefix(kFixedBytes);
    std::uint64_t length = 0;
    if (found > field_id || !is_known(tag) || !take_varint(fields, length) || length > fields.size()) break;
    const std::size_t wanted = fixed_size(tag);
    if (wanted != 0 && wanted != length) break;
    if (found == field_id) return FieldSlice{tag, fields.substr(0, length)};
    fields.remove_prefix(length);
  }
  return std::nullopt;
}

bool FieldCursor::next() {
  if (rest_.empty()) return false;
  constexpr std::size_t kFixedBytes = 4 + 1;
  std::uint64_t length = 0;
  if (rest_.size() > kFixedBytes) {
    field_id_ = load_fixed<std::uint32_t>(rest_.data());
    slice_.tag = static_cast<TypeTag>(rest_[4]);
    rest_.remove_prefix(kFixedBytes);
    const std::size_t wanted = fixed_size(slice_.tag);
    if (is_known(slice_.tag) && take_varint(rest_, length) && length <= rest_.size() &&
        (wanted == 0 || wanted == length)) {
      slice_.bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return true;
    }
  }
  ok_ = false;
  rest_ = {};
  slice_ = {};
  return false;
}

ElementCursor::ElementCursor(const FieldSlice& collection) : rest_(collection.bytes) {
  if (!is_collection(collection.tag)) {
    rest_ = {};
    return;
  }
  const std::size_t tags = collection.tag == TypeTag::Map ? 2 : 1;
  if (rest_.size() > tags) {
    value_tag_ = static_cast<TypeTag>(rest_[tags - 1]);
    if (collection.tag != TypeTag::Array) key_tag_ = static_cast<TypeTag>(rest_[0]);
    if (collection.tag == TypeTag::WeightedSet) value_tag_ = TypeTag::Int;
    rest_.remove_prefix(tags);
    if ((key_tag_ == TypeTag::None || is_known(key_tag_)) && is_known(value_tag_) && take_varint(rest_, count_)) {
      ok_ = count_ <= rest_.size();  // each element takes at least one byte, so a larger count is malformed
      if (count_ == 0) ok_ = rest_.empty();
      return;
    }
  }
  ok_ = false;
}

std::optional<std::string_view> ElementCursor::take(TypeTag tag) {
  std::uint64_t length = fixed_size(tag);
  if (length == 0 && !take_varint(rest_, length)) return std::nullopt;
  if (length > rest_.size()) return std::nullopt;
  const std::string_view bytes = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return bytes;
}

bool ElementCursor::next() {
  if (!ok_ || index_ == count_) {
    if (ok_ && !rest_.empty()) ok_ = false;  // there are bytes after the last element
    return false;
  }
  if (key_tag_ != TypeTag::None) {
    const auto key = take(key_tag_);
    ok_ = key.has_value();
    if (key) key_ = {key_tag_, *key};
  }
  if (ok_) {
    const auto value = take(value_tag_);
    ok_ = value.has_value();
    if (value) value_ = {value_tag_, *value};
  }
  if (ok_) ++index_;
  return ok_;
}

bool FieldSlice::is_integer() const {
  return tag == TypeTag::Int || tag == TypeTag::Long || tag == TypeTag::Byte || tag == TypeTag::Bool;
}

bool FieldSlice::is_number() const { return is_integer() || tag == TypeTag::Float || tag == TypeTag::Double; }

std::int64_t FieldSlice::as_int64() const {
  if (fixed_size(tag) == 0 || bytes.size() != fixed_size(tag)) return 0;
  switch (tag) {
    case TypeTag::Int:
      return load_fixed<std::int32_t>(bytes.data());
    case TypeTag::Long:
      return load_fixed<std::int64_t>(bytes.data());
    case TypeTag::Byte:
      return load_fixed<std::int8_t>(bytes.data());
    case TypeTag::Bool:
      return bytes[0] != 0 ? 1 : 0;
    case TypeTag::Float:
      return clamp_to_int64(static_cast<double>(load_fixed<float>(bytes.data())));
    default:
      return clamp_to_int64(load_fixed<double>(bytes.data()));
  }
}

double FieldSlice::as_double() const {
  if (fixed_size(tag) == 0 || bytes.size() != fixed_size(tag)) return 0;
  if (tag == TypeTag::Float) return static_cast<double>(load_fixed<float>(bytes.data()));
  if (tag == TypeTag::Double) return load_fixed<double>(bytes.data());
  return static_cast<double>(as_int64());
}

std::string_view FieldSlice::as_string_view() const {
  return tag == TypeTag::String || tag == TypeTag::Raw ? bytes : std::string_view();
}

std::optional<FieldSlice> FieldSlice::member(std::uint32_t field_id) const {
  if (tag != TypeTag::Struct) return std::nullopt;
  return find_field(bytes, field_id);
}

Result<FieldValue> FieldSlice::value() const { return read_value(*this, kValueDepthMax); }

Result<DocumentView> DocumentView::open(const DocumentTypeRepo& repo, std::string_view header, std::string_view body) {
  const auto prefix = read_header_prefix(header);
  if (!prefix) return corrupt(fmt::format("malformed document header of {} bytes", header.size()));
  DocumentView view;
  view.header_ = header;
  view.id_ = prefix->id;
  view.type_id_ = prefix->type_id;
  view.header_fields_ = prefix->fields;
  view.body_fields_ = body;
  view.type_ = repo.find(prefix->type_id);
  return view;
}

std::optional<FieldSlice> DocumentView::field(const Field& field) const {
  // If a later schema moved the field to the other part, documents written before still have it in the old part.
  auto slice = find_field(field.in_header ? header_fields_ : body_fields_, field.id);
  if (!slice) slice = find_field(field.in_header ? body_fields_ : header_fields_, field.id);
  return slice && is_value_of(*field.type, *slice) ? slice : std::nullopt;
}

std::optional<FieldSlice> DocumentView::field(std::string_view name) const {
  const Field* declared = type_ == nullptr ? nullptr : type_->field(name);
  return declared == nullptr ? std::nullopt : field(*declared);
}

std::optional<FieldSlice> DocumentView::field_by_id(std::uint32_t field_id) const {
  auto slice = find_field(header_fields_, field_id);
  return slice ? slice : find_field(body_fields_, field_id);
}

Result<Document> DocumentView::document() const {
  if (type_ == nullptr) return Status(StatusCode::UnknownType, fmt::format("no document type with id {}", type_id_));
  auto id = DocumentId::parse(id_);
  if (!id) return corrupt(id.error().message());
  Document document(*type_, std::move(*id));
  for (std::string_view part : {header_fields_, body_fields_}) {
    FieldCursor at(part);
    while (at.next()) {
      const Field* declared = type_->field_by_id(at.field_id());
      if (declared == nullptr) {
        return Status(StatusCode::InvalidField,
                      fmt::format("document type {} has no field with id {}", type_->name(), at.field_id()));
      }
      if (!is_value_of(*declared->type, at.slice())) continue;
      FJORD_TRY_ASSIGN(FieldValue value, at.slice().value());
      FJORD_TRY(document.set(*declared, std::move(value)));
    }
    if (!at.ok()) return corrupt(fmt::format("document {}: malformed fields", id_));
  }
  return document;
}

}  // namespace fjord
