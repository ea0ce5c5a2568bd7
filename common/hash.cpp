#include "fjord/common/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hash_long.h"

namespace fjord {

namespace {

std::uint64_t finalise(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  constexpr std::size_t kLong = 16 << 10;
  if (bytes.size() >= kLong) return hash64_long(bytes.data(), bytes.size(), seed);
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

std::uint32_t checksum32(std::string_view bytes, std::uint64_t seed) {
  return static_cast<std::uint32_t>(hash64(bytes, seed));
}

std::uint64_t mix64(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;
  return finalise(finalise(a + kGolden) + b + kGolden);
}

}  // namespace fjord
