// Writes documents as JSON.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/document/json.h"
#include "json_value.h"

namespace fjord {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

Status corrupt(std::string_view what) { return {StatusCode::Corruption, std::string(what)}; }

void write_string(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}
void write_key(Writer& writer, std::string_view text) {
  writer.Key(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

/// Writes the shortest digits that read back as the same number. RapidJSON supports this only for doubles.
template <typename T>
void write_number(Writer& writer, T value) {
  if (!std::isfinite(value)) {
    writer.Null();
    return;
  }
  char digits[32];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  writer.RawValue(digits, static_cast<std::size_t>(end - digits), rapidjson::kNumberType);
}

Status write_value(Writer& writer, const DataType& type, const FieldSlice& slice);

/// Writes a key as a string, because JSON keys are strings.
void write_as_key(Writer& writer, const FieldSlice& key) {
  if (key.tag == TypeTag::Bool) {
    write_key(writer, key.as_bool() ? "true" : "false");
  } else if (key.is_integer()) {
    write_key(writer, std::to_string(key.as_int64()));
  } else {
    write_key(writer, key.as_string_view());
  }
}

Status write_collection(Writer& writer, const DataType& type, const FieldSlice& slice) {
  ElementCursor at(slice);
  slice.tag == TypeTag::Array ? writer.StartArray() : writer.StartObject();
  while (at.next()) {
    if (slice.tag != TypeTag::Array) write_as_key(writer, at.key());
    if (slice.tag == TypeTag::WeightedSet) {
      writer.Int64(at.value().as_int64());
    } else {
      FJORD_TRY(write_value(writer, *type.element(), at.value()));
    }
  }
  slice.tag == TypeTag::Array ? writer.EndArray() : writer.EndObject();
  return at.ok() ? Status::ok() : corrupt("malformed collection");
}

Status write_struct(Writer& writer, const DataType& type, const FieldSlice& slice) {
  writer.StartObject();
  for (const Field& field : type.fields()) {
    const auto member = slice.member(field.id);
    if (!member) continue;
    write_key(writer, field.name);
    FJORD_TRY(write_value(writer, *field.type, *member));
  }
  writer.EndObject();
  return Status::ok();
}

/// The recursion is as deep as the type.
Status write_value(Writer& writer, const DataType& type, const FieldSlice& slice) {
  if (slice.tag != type.tag()) {
    return {StatusCode::Corruption, fmt::format("expected {}, found {}", type.name(), to_string(slice.tag))};
  }
  switch (slice.tag) {
    case TypeTag::String:
      write_string(writer, slice.bytes);
      break;
    case TypeTag::Raw:
      write_string(writer, base64_encode(slice.bytes));
      break;
    case TypeTag::Bool:
      writer.Bool(slice.as_bool());
      break;
    case TypeTag::Float:
      write_number(writer, static_cast<float>(slice.as_double()));
      break;
    case TypeTag::Double:
      write_number(writer, slice.as_double());
      break;
    case TypeTag::Int:
    case TypeTag::Long:
    case TypeTag::Byte:
      writer.Int64(slice.as_int64());
      break;
    case TypeTag::Array:
    case TypeTag::WeightedSet:
    case TypeTag::Map:
      return write_collection(writer, type, slice);
    case TypeTag::Struct:
      return write_struct(writer, type, slice);
    case TypeTag::None:
      return corrupt("a value of no kind");
  }
  return Status::ok();
}

/// Checks a part first, because lookups by name in a malformed part would silently omit all fields after the damage.
Status check_sequence(std::string_view fields) {
  FieldCursor at(fields);
  std::uint32_t previous = 0;
  while (at.next()) {
    if (at.field_id() <= previous) return corrupt("fields out of order");
    previous = at.field_id();
  }
  return at.ok() ? Status::ok() : corrupt("malformed fields");
}

Status write_fields(Writer& writer, const DocumentView& view, std::span<const Field* const> only) {
  if (view.type() == nullptr) {
    return {StatusCode::UnknownType,
            fmt::format("document {}: no document type with id {}", view.id(), view.type_id())};
  }
  for (std::string_view part : {view.header_fields(), view.body_fields()}) {
    if (Status status = check_sequence(part); !status)
      return status.with_context(fmt::format("document {}", view.id()));
  }
  writer.StartObject();
  for (const Field& field : view.type()->fields()) {
    const auto asked = [&](const Field* f) { return f->id == field.id; };
    if (!only.empty() && std::none_of(only.begin(), only.end(), asked)) continue;
    const auto slice = view.field(field);
    if (!slice) continue;
    write_key(writer, field.name);
    if (Status status = write_value(writer, *field.type, *slice); !status) {
      return status.with_context(fmt::format("document {}, field {}", view.id(), field.name));
    }
  }
  writer.EndObject();
  return Status::ok();
}

std::string take(const rapidjson::StringBuffer& buffer) { return {buffer.GetString(), buffer.GetSize()}; }

}  // namespace

Result<std::string> value_to_json(const DataType& type, const FieldSlice& slice) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  FJORD_TRY(write_value(writer, type, slice));
  return take(buffer);
}

Result<std::string> to_json_fields(const DocumentView& view, std::span<const Field* const> only) {
  rapidjson::StringBuffer buffer(nullptr, 1024);
  Writer writer(buffer);
  FJORD_TRY(write_fields(writer, view, only));
  return take(buffer);
}

Result<std::string> to_json_document(const DocumentView& view, std::span<const Field* const> only) {
  rapidjson::StringBuffer buffer(nullptr, 1024);
  Writer writer(buffer);
  writer.StartObject();
  write_key(writer, "put");
  write_string(writer, view.id());
  if (!view.id().starts_with("id:") && view.type() != nullptr) {
    write_key(writer, "type");
    write_string(writer, view.type()->name());
  }
  write_key(writer, "fields");
  FJORD_TRY(write_fields(writer, view, only));
  writer.EndObject();
  return take(buffer);
}

}  // namespace fjord
