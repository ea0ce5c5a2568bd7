#pragma once

#include <cstdint>
#include <string_view>

namespace fjord {

struct Murmur3Hash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Murmur3Hash&, const Murmur3Hash&) = default;
};

/// MurmurHash3_x64_128, the hash of the ring in [Tell 2016, 4]. It is implemented here because the only library of the
/// Linux distribution that has it (libmurmurhash) would be a dependency for twenty lines.
Murmur3Hash murmur3_128(std::string_view bytes, std::uint32_t seed = 0);

}  // namespace fjord
