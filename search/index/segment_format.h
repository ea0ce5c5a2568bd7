#pragma once

#include <cstddef>
#include <cstdint>

namespace fjord::search {

// Layout of the files of an index: search/index/FORMAT.md.

inline constexpr std::uint32_t kSegmentMagic = 0x46534b49;   // The bytes "IKSF", which begin a segment.
inline constexpr std::uint32_t kManifestMagic = 0x46534d49;  // The bytes "IMSF", which begin a manifest.
inline constexpr std::uint16_t kIndexFormatVersion = 1;
/// A page ends with the checksum of the bytes before it.
inline constexpr std::size_t kPageBytes = 4096;
inline constexpr std::size_t kPageContent = kPageBytes - 4;
inline constexpr std::size_t kSegmentHeaderBytes = 14;
/// A run of documents ends with the first one that reaches this size, so most lie in two pages.
inline constexpr std::size_t kRunBytes = 2048;
inline constexpr std::size_t kGidBytes = 12;
inline constexpr unsigned kFilterBitsPerKey = 10;
inline constexpr unsigned kFilterProbes = 4;

}  // namespace fjord::search
