#pragma once

#include <cstdint>
#include <string_view>

namespace fjord {

/// XXH3, 64 bits: hash tables, field and type numbers, keys of MapReduce. Stable: written to files and sent to others.
std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);
/// The low 32 bits of XXH3 as the checksum of stored bytes; `seed` carries the location, so that bytes that were
/// written to the wrong place do not verify.
std::uint32_t checksum32(std::string_view bytes, std::uint64_t seed = 0);
/// A well-mixed 64-bit value of two numbers (the finaliser of splitmix64).
std::uint64_t mix64(std::uint64_t a, std::uint64_t b);

}  // namespace fjord
