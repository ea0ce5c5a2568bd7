#include "fjord/common/coding.h"

namespace fjord {

std::uint64_t ByteReader::long_varint() {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes_.size() && i < kVarintBytesMax; ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[i]);
    if (i == kVarintBytesMax - 1 && byte > 1) break;  // the number does not fit into 64 bits
    value |= static_cast<std::uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      bytes_.remove_prefix(i + 1);
      return value;
    }
  }
  return fail<std::uint64_t>();
}

}  // namespace fjord
