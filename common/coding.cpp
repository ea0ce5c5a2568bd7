#include "fjord/common/coding.h"

namespace fjord {

void put_varint(std::string& out, std::uint64_t value) {
  if (value < 0x80) {
    out.push_back(static_cast<char>(static_cast<unsigned char>(value)));
    return;
  }
  char bytes[10];
  std::size_t n = 0;
  while (value >= 0x80) {
    bytes[n++] = static_cast<char>(static_cast<unsigned char>(value | 0x80));
    value >>= 7;
  }
  bytes[n++] = static_cast<char>(static_cast<unsigned char>(value));
  out.append(bytes, n);
}

void put_string(std::string& out, std::string_view value) {
  put_varint(out, value.size());
  out.append(value);
}

std::uint64_t ByteReader::varint() {
  if (!bytes_.empty() && static_cast<unsigned char>(bytes_[0]) < 0x80) {
    const auto value = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return value;
  }
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes_.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[i]);
    if (i == 9 && byte > 1) break;  // the number does not fit into 64 bits
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes_.remove_prefix(i + 1);
      return value;
    }
  }
  return fail<std::uint64_t>();
}

}  // namespace fjord
