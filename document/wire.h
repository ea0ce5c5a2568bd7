#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/coding.h"
#include "fjord/document/document.h"
#include "fjord/document/document_format.h"

/// Writing and reading the pieces of the wire form (FORMAT.md).
namespace fjord {

/// Reserves a length prefix; finish() sets it to the number of bytes appended since.
class LengthPrefix {
 public:
  explicit LengthPrefix(std::string& out) : out_(out), at_(out.size()) { out.push_back('\0'); }
  void finish() {
    std::uint64_t length = out_.size() - at_ - 1;
    if (length < 0x80) {
      out_[at_] = static_cast<char>(length);
      return;
    }
    char bytes[10];
    std::size_t n = 0;
    for (; length >= 0x80; length >>= 7) bytes[n++] = static_cast<char>(length | 0x80);
    bytes[n++] = static_cast<char>(length);
    out_.replace(at_, 1, bytes, n);
  }

 private:
  std::string& out_;
  std::size_t at_;
};

inline void append_tag(std::string& out, TypeTag tag) { out.push_back(static_cast<char>(tag)); }

/// Writes the field's id and tag; its length and value follow.
inline void append_field_start(std::string& out, std::uint32_t field_id, TypeTag tag) {
  put_fixed(out, field_id);
  append_tag(out, tag);
}

/// Writes version, type and id: the start of a header part.
void append_header_prefix(std::string& out, const DocumentType& type, std::string_view id);

/// Writes the value without tag and length. `value` fits `type`.
void append_value(std::string& out, const DataType& type, const FieldValue& value);
std::string encode_value(const DataType& type, const FieldValue& value);

/// Removes a varint from the front of `rest`. Returns false and keeps `rest` if there is none.
inline bool take_varint(std::string_view& rest, std::uint64_t& value) {
  if (!rest.empty() && static_cast<unsigned char>(rest[0]) < 0x80) {
    value = static_cast<unsigned char>(rest[0]);
    rest.remove_prefix(1);
    return true;
  }
  ByteReader reader(rest);
  value = reader.varint();
  if (!reader.ok()) return false;
  rest = reader.rest();
  return true;
}

/// The parts of a header. read_header_prefix() returns empty for a malformed header or another version.
struct HeaderPrefix {
  std::uint32_t type_id;
  std::string_view id;
  std::string_view fields;
};
std::optional<HeaderPrefix> read_header_prefix(std::string_view header);

/// Finds a field by id in a sequence sorted by id; empty if it is not there.
std::optional<FieldSlice> find_field(std::string_view fields, std::uint32_t field_id);

}  // namespace fjord
