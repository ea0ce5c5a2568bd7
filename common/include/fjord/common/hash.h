#pragma once

#include <cstdint>
#include <string_view>

namespace fjord {

/// Returns XXH3 with 64 bits, for hash tables, field and type numbers, and keys of MapReduce. Stable: the values are in
/// files and messages.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);
/// Returns the low 32 bits of XXH3 as the checksum of stored bytes. `seed` carries the location, so that bytes written
/// to the wrong place do not verify.
std::uint32_t checksum32(std::string_view bytes, std::uint64_t seed = 0);
/// Mixes two numbers into a 64-bit value (the finaliser of splitmix64).
std::uint64_t mix64(std::uint64_t a, std::uint64_t b);

}  // namespace fjord
