#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "fjord/document/document.h"
#include "fjord/document/validate_fields.h"
#include "text.h"
#include "wire.h"

namespace fjord {
namespace {

Status corrupt(std::string what) { return {StatusCode::Corruption, std::move(what)}; }

Status wrong_type(const DataType& type, TypeTag found) {
  return {StatusCode::InvalidField, fmt::format("expected {}, found {}", type.name(), to_string(found))};
}

Status check_value(const DataType& type, const FieldSlice& slice);

/// Keys are views into the document and are compared without copies.
Status check_distinct(std::vector<std::string_view>& keys) {
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) return corrupt("a key occurs twice");
  return Status::ok();
}

Status check_collection(const DataType& type, const FieldSlice& slice) {
  const DataType* key_type = type.tag() == TypeTag::WeightedSet ? type.element() : type.key();
  const DataType* value_type = type.tag() == TypeTag::WeightedSet ? nullptr : type.element();
  // The tags precede the elements and are present even in an empty collection.
  const std::size_t tags = type.tag() == TypeTag::Map ? 2 : 1;
  if (slice.bytes.size() <= tags) return corrupt(fmt::format("truncated {}", type.name()));
  const auto first = static_cast<TypeTag>(slice.bytes[0]);
  const auto last = static_cast<TypeTag>(slice.bytes[tags - 1]);
  if (key_type != nullptr && first != key_type->tag()) return wrong_type(*key_type, first);
  if (value_type != nullptr && last != value_type->tag()) return wrong_type(*value_type, last);

  std::vector<std::string_view> keys;
  ElementCursor at(slice);
  while (at.next()) {
    Status status;
    if (key_type != nullptr) {
      status = check_value(*key_type, at.key());
      keys.push_back(at.key().bytes);
    }
    if (status && value_type != nullptr) status = check_value(*value_type, at.value());
    if (!status) return status.with_context(fmt::format("[{}]", at.index()));
  }
  if (!at.ok()) return corrupt(fmt::format("malformed {}", type.name()));
  return check_distinct(keys);
}

Status check_struct(const DataType& type, const FieldSlice& slice) {
  FieldCursor at(slice.bytes);
  std::uint32_t previous = 0;
  while (at.next()) {
    const Field* field = type.field_by_id(at.field_id());
    if (field == nullptr) {
      return {StatusCode::InvalidField, fmt::format("struct {} has no field with id {}", type.name(), at.field_id())};
    }
    if (at.field_id() <= previous) return corrupt(fmt::format("{}: fields out of order", field->name));
    previous = at.field_id();
    if (Status status = check_value(*field->type, at.slice()); !status) return status.with_context(field->name);
  }
  return at.ok() ? Status::ok() : corrupt(fmt::format("malformed struct {}", type.name()));
}

Status check_value(const DataType& type, const FieldSlice& slice) {
  if (slice.tag != type.tag()) return wrong_type(type, slice.tag);
  switch (slice.tag) {
    case TypeTag::String:
      return is_utf8(slice.bytes) ? Status::ok() : corrupt("a string that is not UTF-8");
    case TypeTag::Bool:
      return static_cast<unsigned char>(slice.bytes[0]) <= 1 ? Status::ok() : corrupt("a bool that is neither 0 nor 1");
    case TypeTag::Array:
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return check_collection(type, slice);
    case TypeTag::Struct:
      return check_struct(type, slice);
    default:
      return Status::ok();  // any bytes are valid; the cursor has checked their number
  }
}

Status check_part(const DocumentType& type, std::string_view fields, bool is_header) {
  FieldCursor at(fields);
  std::uint32_t previous = 0;
  while (at.next()) {
    const Field* field = type.field_by_id(at.field_id());
    if (field == nullptr) {
      return {StatusCode::InvalidField,
              fmt::format("document type {} has no field with id {}", type.name(), at.field_id())};
    }
    if (field->in_header != is_header) {
      return {StatusCode::InvalidField, fmt::format("field {} is in the wrong part of the document", field->name)};
    }
    if (at.field_id() <= previous) return corrupt(fmt::format("field {}: fields out of order", field->name));
    previous = at.field_id();
    if (Status status = check_value(*field->type, at.slice()); !status) {
      return status.with_context(fmt::format("field {}", field->name));
    }
  }
  return at.ok() ? Status::ok() : corrupt(fmt::format("malformed fields in the {}", is_header ? "header" : "body"));
}

}  // namespace

bool is_value_of(const DataType& type, const FieldSlice& slice) {
  if (slice.tag != type.tag()) return false;
  if (!is_collection(slice.tag)) return true;
  const std::size_t tags = slice.tag == TypeTag::Map ? 2 : 1;
  if (slice.bytes.size() < tags) return true;  // Malformed: whoever reads it says so.
  if (type.key() != nullptr && static_cast<TypeTag>(slice.bytes[0]) != type.key()->tag()) return false;
  return static_cast<TypeTag>(slice.bytes[tags - 1]) == type.element()->tag();
}

Status validate_fields(const DocumentType& type, std::string_view header_fields, std::string_view body) {
  FJORD_TRY(check_part(type, header_fields, true));
  return check_part(type, body, false);
}

Status validate(const DocumentTypeRepo& repo, std::string_view header, std::string_view body) {
  const auto prefix = read_header_prefix(header);
  if (!prefix) return corrupt(fmt::format("malformed document header of {} bytes", header.size()));
  FJORD_TRY_ASSIGN(DocumentId id, DocumentId::parse(prefix->id));
  const DocumentType* type = repo.find(prefix->type_id);
  if (type == nullptr) {
    return {StatusCode::UnknownType,
            fmt::format("document {}: no document type with id {}", id.str(), prefix->type_id)};
  }
  if (!id.type().empty() && id.type() != type->name()) {
    return {StatusCode::InvalidId, fmt::format("document {}: its type is {}", id.str(), type->name())};
  }
  const Status status = validate_fields(*type, prefix->fields, body);
  return status ? status : status.with_context(fmt::format("document {}", id.str()));
}

}  // namespace fjord
