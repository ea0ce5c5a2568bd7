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

/// Writes a length before bytes that are not there yet: the length when finish() is called.
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

/// The field's id and tag; its length and value follow.
inline void append_field_start(std::string& out, std::uint32_t field_id, TypeTag tag) {
  put_fixed(out, field_id);
  append_tag(out, tag);
}

/// Version, type and id: the beginning of a header part.
void append_header_prefix(std::string& out, const DocumentType& type, std::string_view id);

/// The value without tag and length. `value` fits `type`.
void append_value(std::string& out, const DataType& type, const FieldValue& value);
std::string encode_value(const DataType& type, const FieldValue& value);

/// Takes a varint from the front of `rest`; false, with `rest` as it was, if there is none.
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

/// The parts of a header. Empty if it is malformed or of another version.
struct HeaderPrefix {
  std::uint32_t type_id;
  std::string_view id;
  std::string_view fields;
};
std::optional<HeaderPrefix> read_header_prefix(std::string_view header);

/// The field with this id in a sequence that is sorted by id.
std::optional<FieldSlice> find_field(std::string_view fields, std::uint32_t field_id);

}  // namespace fjord
