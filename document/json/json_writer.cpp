// Writes documents as JSON.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include "fjord/document/json.h"
#include "fjord/document/validate_fields.h"
#include "json_value.h"

namespace fjord {
namespace {

/// Returns true if each of 16 bytes stands in a JSON string as it is.
bool are_plain(const char* text) {
  using Bytes [[gnu::vector_size(16)]] = unsigned char;
  Bytes bytes;
  std::memcpy(&bytes, text, sizeof(bytes));
  const auto special = (bytes < 0x20) | (bytes == '"') | (bytes == '\\');
  std::uint64_t words[2];
  std::memcpy(words, &special, sizeof(words));
  return (words[0] | words[1]) == 0;
}

/// Returns how many bytes at the beginning of a text stand in a JSON string as they are.
std::size_t plain_prefix(std::string_view text) {
  constexpr std::uint64_t kOnes = 0x0101010101010101U;
  constexpr std::uint64_t kHighBits = 0x8080808080808080U;
  // A high bit of the result is set if a byte of the word is zero.
  const auto has_zero = [](std::uint64_t word) { return (word - kOnes) & ~word & kHighBits; };
  std::size_t at = 0;
  while (text.size() - at >= 16 && are_plain(text.data() + at)) at += 16;
  for (; text.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    const std::uint64_t controls = (word - kOnes * 0x20) & ~word & kHighBits;
    if ((controls | has_zero(word ^ (kOnes * '"')) | has_zero(word ^ (kOnes * '\\'))) != 0) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) >= 0x20 && text[at] != '"' && text[at] != '\\') ++at;
  return at;
}

/// RapidJSON's writer, which copies the plain parts of strings at once instead of byte by byte: most of a document is
/// text. Bytes from 0x80 on are copied unseen, as RapidJSON does.
class Writer final : public rapidjson::Writer<rapidjson::StringBuffer> {
 public:
  using rapidjson::Writer<rapidjson::StringBuffer>::Writer;

  void string(std::string_view text) {
    Prefix(rapidjson::kStringType);
    os_->Put('"');
    while (!text.empty()) {
      const std::size_t plain = plain_prefix(text);
      if (plain > 0) std::memcpy(os_->Push(plain), text.data(), plain);
      text.remove_prefix(plain);
      if (text.empty()) break;
      escape(text.front());
      text.remove_prefix(1);
    }
    os_->Put('"');
    EndValue(true);
  }

 private:
  void escape(char c) {
    constexpr std::string_view kHex = "0123456789ABCDEF";
    constexpr std::pair<char, char> kShort[] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                                {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
    os_->Put('\\');
    for (const auto& [special, letter] : kShort) {
      if (special == c) return os_->Put(letter);
    }
    for (const char one : {'u', '0', '0', kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]}) os_->Put(one);
  }
};

Status corrupt(std::string_view what) { return {StatusCode::Corruption, std::string(what)}; }

void write_string(Writer& writer, std::string_view text) { writer.string(text); }
void write_key(Writer& writer, std::string_view text) { writer.string(text); }

/// Writes the shortest digits that read back as the same number. RapidJSON supports this only for doubles. JSON has no
/// numbers that are not finite: these are texts, as in the JSON form of protocol buffers. "-0" would be an integer,
/// which has no sign.
template <typename T>
void write_number(Writer& writer, T value) {
  if (!std::isfinite(value)) return writer.string(std::isnan(value) ? kNan : value > 0 ? kInfinity : kMinusInfinity);
  if (value == 0 && std::signbit(value)) {
    writer.RawValue("-0.0", 4, rapidjson::kNumberType);
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
    if (!member || !is_value_of(*field.type, *member)) continue;
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

/// Calls `write(field, slice)` for each field that is set and asked for, in the order of the type's declaration.
template <typename F>
Status for_each_field(const DocumentView& view, std::span<const Field* const> only, F write) {
  if (view.type() == nullptr) {
    return {StatusCode::UnknownType,
            fmt::format("document {}: no document type with id {}", view.id(), view.type_id())};
  }
  for (std::string_view part : {view.header_fields(), view.body_fields()}) {
    if (Status status = check_sequence(part); !status)
      return status.with_context(fmt::format("document {}", view.id()));
  }
  for (const Field& field : view.type()->fields()) {
    const auto asked = [&](const Field* f) { return f->id == field.id; };
    if (!only.empty() && std::none_of(only.begin(), only.end(), asked)) continue;
    const auto slice = view.field(field);
    if (!slice) continue;
    if (Status status = write(field, *slice); !status) {
      return status.with_context(fmt::format("document {}, field {}", view.id(), field.name));
    }
  }
  return Status::ok();
}

Status write_fields(Writer& writer, const DocumentView& view, std::span<const Field* const> only) {
  writer.StartObject();
  FJORD_TRY(for_each_field(view, only, [&](const Field& field, const FieldSlice& slice) {
    write_key(writer, field.name);
    return write_value(writer, *field.type, slice);
  }));
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

class JsonLines::Impl {
 public:
  rapidjson::StringBuffer buffer{nullptr, 64 << 10};
  Writer writer{buffer};

  std::size_t size() const { return buffer.GetSize(); }
  void raw(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(buffer.Push(text.size()), text.data(), text.size());
  }
  void string(std::string_view text) {
    writer.Reset(buffer);
    write_string(writer, text);
  }
  void cut_to(std::size_t size) { buffer.Pop(buffer.GetSize() - size); }
  /// Returns true if the text from `begin` on is an empty string, array or object.
  bool is_empty_value(std::size_t begin) const {
    const std::string_view value(buffer.GetString() + begin, buffer.GetSize() - begin);
    return value == "\"\"" || value == "[]" || value == "{}";
  }
  Status fields(const DocumentView& view, std::span<const Field* const> only) {
    raw("{");
    const std::size_t first = size();
    FJORD_TRY(for_each_field(view, only, [&](const Field& field, const FieldSlice& slice) {
      const std::size_t begin = size();
      if (begin != first) raw(",");
      string(field.name);
      raw(":");
      const std::size_t value = size();
      writer.Reset(buffer);
      Status status = write_value(writer, *field.type, slice);
      if (status && is_empty_value(value)) cut_to(begin);
      return status;
    }));
    raw("}");
    return Status::ok();
  }
};

JsonLines::JsonLines() : impl_(std::make_unique<Impl>()) {}
JsonLines::~JsonLines() = default;
void JsonLines::append(std::string_view text) { impl_->raw(text); }
void JsonLines::append_string(std::string_view text) { impl_->string(text); }
std::size_t JsonLines::size() const { return impl_->size(); }
void JsonLines::cut_to(std::size_t size) { impl_->cut_to(size); }
std::string JsonLines::take() {
  std::string text = ::fjord::take(impl_->buffer);
  impl_->buffer.Clear();
  return text;
}

Status JsonLines::append_content(const DocumentView& view, std::span<const Field* const> only) {
  const std::size_t begin = impl_->size();
  const Status status = impl_->fields(view, only);
  if (!status) impl_->cut_to(begin);
  return status;
}

}  // namespace fjord
