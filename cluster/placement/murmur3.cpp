#include "placement/murmur3.h"

#include <bit>
#include <cstddef>

namespace fjord {
namespace {

constexpr std::uint64_t kFirst = 0x87c37b91114253d5u;
constexpr std::uint64_t kSecond = 0x4cf5ad432745937fu;

/// Returns up to 8 bytes as a number, the first byte lowest.
std::uint64_t word_of(std::string_view bytes) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

std::uint64_t scramble_low(std::uint64_t word) { return std::rotl(word * kFirst, 31) * kSecond; }
std::uint64_t scramble_high(std::uint64_t word) { return std::rotl(word * kSecond, 33) * kFirst; }

std::uint64_t finish(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdu;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53u;
  return x ^ (x >> 33);
}

}  // namespace

Murmur3Hash murmur3_128(std::string_view bytes, std::uint32_t seed) {
  std::uint64_t low = seed;
  std::uint64_t high = seed;
  const std::size_t length = bytes.size();
  for (; bytes.size() >= 16; bytes.remove_prefix(16)) {
    low = (std::rotl(low ^ scramble_low(word_of(bytes.substr(0, 8))), 27) + high) * 5 + 0x52dce729;
    high = (std::rotl(high ^ scramble_high(word_of(bytes.substr(8, 8))), 31) + low) * 5 + 0x38495ab5;
  }
  if (bytes.size() > 8) high ^= scramble_high(word_of(bytes.substr(8)));
  low ^= scramble_low(word_of(bytes.substr(0, 8)));
  low ^= length;
  high ^= length;
  low += high;
  high += low;
  low = finish(low);
  high = finish(high);
  low += high;
  high += low;
  return {low, high};
}

}  // namespace fjord
