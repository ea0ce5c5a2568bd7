#include "fjord/document/document.h"

#include <algorithm>
#include <fmt/format.h>

#include "wire.h"

namespace fjord {
namespace {

template <typename Fields>
auto position_of(Fields& fields, std::uint32_t id) {
  return std::lower_bound(fields.begin(), fields.end(), id,
                          [](const auto& entry, std::uint32_t wanted) { return entry.first->id < wanted; });
}

void append_element(std::string& out, const DataType& type, const FieldValue& value) {
  if (fixed_size(type.tag()) > 0) {
    append_value(out, type, value);
  } else {
    LengthPrefix length(out);
    append_value(out, type, value);
    length.finish();
  }
}

void append_collection(std::string& out, const DataType& type, const FieldValue& value) {
  if (const auto* array = value.get_if<ArrayValue>()) {
    append_tag(out, type.element()->tag());
    put_varint(out, array->elements.size());
    for (const FieldValue& element : array->elements) append_element(out, *type.element(), element);
  } else if (const auto* set = value.get_if<WeightedSetValue>()) {
    append_tag(out, type.element()->tag());
    put_varint(out, set->elements.size());
    for (const auto& [element, weight] : set->elements) {
      append_element(out, *type.element(), element);
      put_fixed(out, weight);
    }
  } else if (const auto* map = value.get_if<MapValue>()) {
    append_tag(out, type.key()->tag());
    append_tag(out, type.element()->tag());
    put_varint(out, map->entries.size());
    for (const auto& [key, element] : map->entries) {
      append_element(out, *type.key(), key);
      append_element(out, *type.element(), element);
    }
  }
}

void append_fields(std::string& out, const Document& document, bool in_header) {
  for (const auto& [field, value] : document.fields()) {
    if (field->in_header != in_header) continue;
    append_field_start(out, field->id, field->type->tag());
    LengthPrefix length(out);
    append_value(out, *field->type, value);
    length.finish();
  }
}

}  // namespace

void append_header_prefix(std::string& out, const DocumentType& type, std::string_view id) {
  put_fixed(out, kDocumentFormatVersion);
  put_fixed(out, type.id());
  put_string(out, id);
}

void append_value(std::string& out, const DataType& type, const FieldValue& value) {
  FJORD_CHECK(type.tag() == value.tag());
  switch (value.tag()) {
    case TypeTag::None:
      break;
    case TypeTag::String:
      out += *value.get_if<std::string>();
      break;
    case TypeTag::Int:
      put_fixed(out, *value.get_if<std::int32_t>());
      break;
    case TypeTag::Long:
      put_fixed(out, *value.get_if<std::int64_t>());
      break;
    case TypeTag::Float:
      put_fixed(out, *value.get_if<float>());
      break;
    case TypeTag::Double:
      put_fixed(out, *value.get_if<double>());
      break;
    case TypeTag::Bool:
      out.push_back(*value.get_if<bool>() ? '\1' : '\0');
      break;
    case TypeTag::Byte:
      put_fixed(out, *value.get_if<std::int8_t>());
      break;
    case TypeTag::Raw:
      out += value.get_if<RawValue>()->bytes;
      break;
    case TypeTag::Array:
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      append_collection(out, type, value);
      break;
    case TypeTag::Struct:
      for (const auto& [id, member] : value.get_if<StructValue>()->members) {
        const Field* field = type.field_by_id(id);
        FJORD_CHECK(field != nullptr);
        append_field_start(out, id, field->type->tag());
        LengthPrefix length(out);
        append_value(out, *field->type, member);
        length.finish();
      }
      break;
  }
}

std::string encode_value(const DataType& type, const FieldValue& value) {
  std::string out;
  append_value(out, type, value);
  return out;
}

Status Document::set(std::string_view field_name, FieldValue value) {
  const Field* field = type_->field(field_name);
  if (field == nullptr) {
    return {StatusCode::InvalidField, fmt::format("document type {} has no field {}", type_->name(), field_name)};
  }
  return set(*field, std::move(value));
}

Status Document::set(const Field& field, FieldValue value) {
  if (Status status = field.type->check(value); !status) {
    return status.with_context(fmt::format("field {}", field.name));
  }
  const auto at = position_of(fields_, field.id);
  if (at != fields_.end() && at->first->id == field.id) {
    at->second = std::move(value);
  } else {
    fields_.emplace(at, &field, std::move(value));
  }
  return Status::ok();
}

const FieldValue* Document::get(std::string_view field_name) const {
  const Field* field = type_->field(field_name);
  return field == nullptr ? nullptr : get(*field);
}

const FieldValue* Document::get(const Field& field) const {
  const auto at = position_of(fields_, field.id);
  return at != fields_.end() && at->first->id == field.id ? &at->second : nullptr;
}

std::optional<std::int64_t> Document::integer(std::string_view field_name) const {
  const FieldValue* const value = get(field_name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->get_if<std::int64_t>()) return *number;
  if (const auto* number = value->get_if<std::int32_t>()) return *number;
  if (const auto* number = value->get_if<std::int8_t>()) return *number;
  if (const auto* truth = value->get_if<bool>()) return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Document::number(std::string_view field_name) const {
  const FieldValue* const value = get(field_name);
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->get_if<double>()) return *number;
  if (const auto* number = value->get_if<float>()) return *number;
  const std::optional<std::int64_t> integral = integer(field_name);
  return integral ? std::optional<double>(static_cast<double>(*integral)) : std::nullopt;
}

std::optional<std::string_view> Document::text(std::string_view field_name) const {
  const FieldValue* const value = get(field_name);
  if (value == nullptr) return std::nullopt;
  const auto* const text = value->get_if<std::string>();
  return text == nullptr ? std::nullopt : std::optional<std::string_view>(*text);
}

bool Document::remove(std::string_view field_name) {
  const Field* field = type_->field(field_name);
  if (field == nullptr) return false;
  const auto at = position_of(fields_, field->id);
  if (at == fields_.end() || at->first->id != field->id) return false;
  fields_.erase(at);
  return true;
}

bool operator==(const Document& a, const Document& b) {
  return a.type().name() == b.type().name() && a.id() == b.id() &&
         std::equal(a.fields_.begin(), a.fields_.end(), b.fields_.begin(), b.fields_.end(),
                    [](const auto& x, const auto& y) { return x.first->id == y.first->id && x.second == y.second; });
}

EncodedDocument encode(const Document& document) {
  EncodedDocument encoded;
  append_header_prefix(encoded.header, document.type(), document.id().str());
  append_fields(encoded.header, document, true);
  append_fields(encoded.body, document, false);
  return encoded;
}

}  // namespace fjord
