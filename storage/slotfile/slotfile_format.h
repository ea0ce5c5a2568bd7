#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/cluster/replica_set.h"
#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/document/timestamp.h"

/// Constants and codecs of the files of a bucket; the text is storage/FORMAT.md. Changing anything here changes the
/// format.
namespace fjord::slotfile {

inline constexpr std::uint32_t kSlotfileMagic = 0x4c534a46;  // "FJSL"
inline constexpr std::uint32_t kManifestMagic = 0x4d424a46;  // "FJBM"
inline constexpr std::uint16_t kFormatVersion = 1;

inline constexpr std::uint64_t kHeaderCopyBytes = 64;
inline constexpr std::uint64_t kHeaderCopyOffsets[2] = {0, 2048};
inline constexpr std::uint64_t kHeaderAreaBytes = 4096;
inline constexpr std::size_t kEntryBytes = 40;
inline constexpr std::size_t kPartChecksumBytes = 4;
inline constexpr unsigned kSlotBitsMax = 6;
/// Positions have 32 bits.
inline constexpr std::uint64_t kRegionBytesMax = 0xffffffff;
/// Lengths have 27 bits, which holds kPartBytesMax.
inline constexpr std::uint32_t kPartLengthMask = (1U << 27) - 1;
inline constexpr std::uint32_t kFlagRemoved = 1U << 27;
inline constexpr std::uint32_t kFlagsMask = kFlagRemoved;

/// Everything fixed when a slotfile is written; it never changes afterwards.
struct FileHeader {
  BucketId bucket;
  std::uint32_t generation = 0;
  std::uint16_t slot = 0;
  std::uint8_t slot_bits = 0;  ///< k
  std::uint32_t entry_capacity = 0;
  std::uint64_t header_capacity = 0;  ///< Bytes of the header blob.
  std::uint64_t body_capacity = 0;

  std::uint64_t entry_offset(std::uint64_t index) const { return kHeaderAreaBytes + index * kEntryBytes; }
  std::uint64_t header_offset() const { return entry_offset(entry_capacity); }
  std::uint64_t body_offset() const { return header_offset() + header_capacity; }
  std::uint64_t file_bytes() const { return body_offset() + body_capacity; }

  friend bool operator==(const FileHeader&, const FileHeader&) = default;
};

/// The whole header area, both copies.
std::string encode_header_area(const FileHeader& header);
/// From one copy of kHeaderCopyBytes. Errors: Corruption; NotImplemented for a newer version or unknown feature.
Result<FileHeader> decode_header_copy(std::string_view copy);

/// A metadata entry. Positions are relative to their blob; lengths do not count the checksum that follows a part. A
/// part of length 0 takes no space. Of a removed entry the "header" is the document id.
struct MetaEntry {
  std::uint64_t timestamp_us = 0;
  std::uint32_t header_position = 0;
  std::uint32_t body_position = 0;
  std::uint32_t header_length_flags = 0;
  std::uint32_t body_length = 0;
  GlobalId gid;

  bool removed() const { return (header_length_flags & kFlagRemoved) != 0; }
  std::uint32_t header_length() const { return header_length_flags & kPartLengthMask; }
  Timestamp timestamp() const { return Timestamp{timestamp_us}; }
  /// Of the document: nothing for a removed one.
  std::uint64_t document_bytes() const {
    return removed() ? 0 : std::uint64_t{header_length()} + std::uint64_t{body_length};
  }

  friend bool operator==(const MetaEntry&, const MetaEntry&) = default;
};

/// What a part takes in its blob.
constexpr std::uint64_t stored_bytes(std::uint64_t length) { return length == 0 ? 0 : length + kPartChecksumBytes; }

/// Seeds the checksums of a slotfile's metadata entries; depends on where they are.
std::uint64_t entry_seed(BucketId bucket, std::uint32_t slot, std::uint64_t index);
void encode_entry(const MetaEntry& entry, std::uint64_t seed, char* into);
/// Nothing if the checksum or a reserved bit is wrong.
std::optional<MetaEntry> decode_entry(const char* from, std::uint64_t seed);
/// decode_entry after turning back the one bit whose flip explains the checksum; nothing if there is none.
std::optional<MetaEntry> repair_entry(const char* from, std::uint64_t seed);

enum class Part { Header, Body };
/// Seeds the checksum of a document part; does not depend on where it is, so that parts are moved as they are.
std::uint64_t part_seed(BucketId bucket, const GlobalId& gid, std::uint64_t timestamp_us, Part part);

/// The slotfile of a document among 2^slot_bits.
inline std::uint32_t slot_of(const GlobalId& gid, unsigned slot_bits) {
  return static_cast<std::uint32_t>(gid.hash_bits() >> 48) & ((1U << slot_bits) - 1);
}

/// The root of a bucket: which files are its slotfiles. Replaced as a whole.
struct Manifest {
  BucketId bucket;
  std::uint32_t generation = 1;
  std::uint8_t slot_bits = 0;
  ReplicaSet replicas;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

std::string encode_manifest(const Manifest& manifest);
/// Errors: Corruption; NotImplemented for a newer version or unknown feature.
Result<Manifest> decode_manifest(std::string_view bytes);

inline constexpr std::string_view kManifestName = "manifest";
inline constexpr std::string_view kTemporarySuffix = ".tmp";
inline constexpr std::string_view kBadSuffix = ".bad";
inline constexpr std::string_view kDeletedSuffix = ".deleted";

/// "4000000000000012"
std::string bucket_directory_name(BucketId bucket);
std::optional<BucketId> parse_bucket_directory_name(std::string_view name);

struct SlotfileName {
  std::uint32_t generation = 0;
  std::uint32_t slot = 0;
};
/// "00000001-03.slot": generation and slot, hexadecimal.
std::string slotfile_name(std::uint32_t generation, std::uint32_t slot);
std::optional<SlotfileName> parse_slotfile_name(std::string_view name);

}  // namespace fjord::slotfile
