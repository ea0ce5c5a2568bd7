#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace fjord {

static_assert(std::endian::native == std::endian::little, "files and wire are little-endian; swap here for others");

template <typename T>
void put_fixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
T load_fixed(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store_fixed(char* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// The most bytes that a LEB128 number of 64 bits has.
inline constexpr std::size_t kVarintBytesMax = 10;
/// Writes a LEB128 number to `at`, which has room for kVarintBytesMax bytes: seven bits in a byte, low ones first.
/// Returns the end of what it wrote.
inline char* store_varint(char* at, std::uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<char>(static_cast<unsigned char>(value | 0x80));
    value >>= 7;
  }
  *at++ = static_cast<char>(static_cast<unsigned char>(value));
  return at;
}

/// Appends a LEB128 number.
inline void put_varint(std::string& out, std::uint64_t value) {
  char bytes[kVarintBytesMax];
  out.append(bytes, static_cast<std::size_t>(store_varint(bytes, value) - bytes));
}
/// Appends the length as a varint, and the bytes.
inline void put_string(std::string& out, std::string_view value) {
  put_varint(out, value.size());
  out.append(value);
}

/// Reads what the put functions above have written. After the first failure every read fails, so a caller checks once
/// at the end.
/// Lifetime: the views that it returns point into the bytes given to the constructor.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T fixed() {
    if (bytes_.size() < sizeof(T)) return fail<T>();
    T value = load_fixed<T>(bytes_.data());
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::uint64_t varint() {
    if (bytes_.empty() || static_cast<unsigned char>(bytes_[0]) >= 0x80) return long_varint();
    const auto value = static_cast<unsigned char>(bytes_[0]);
    bytes_.remove_prefix(1);
    return value;
  }
  std::string_view bytes(std::size_t n) {
    if (bytes_.size() < n) return fail<std::string_view>();
    std::string_view value = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return value;
  }
  std::string_view string() { return bytes(static_cast<std::size_t>(varint())); }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }
  std::size_t remaining() const { return bytes_.size(); }
  std::string_view rest() const { return bytes_; }

 private:
  /// Reads a number of several bytes.
  std::uint64_t long_varint();
  template <typename T>
  T fail() {
    ok_ = false;
    bytes_ = {};
    return T{};
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace fjord
