#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "file_format.h"

/// Constants and codecs of journal segments, described in storage/FORMAT.md. Any change here changes the format.
namespace fjord::slotfile {

inline constexpr std::uint32_t kSegmentMagic = 0x534a4a46;  // The bytes "FJJS" as a little-endian number.
inline constexpr std::uint32_t kRecordMagic = 0x524a4a46;   // The bytes "FJJR" as a little-endian number.
inline constexpr std::uint64_t kSegmentHeaderBytes = 64;
inline constexpr std::uint64_t kRecordHeaderBytes = 40;
inline constexpr std::uint64_t kRecordAlignment = 8;
inline constexpr std::size_t kWriteMetaBytes = 40;

enum class RecordType : std::uint8_t { Writes = 1, Edit = 2 };

constexpr std::uint64_t record_aligned(std::uint64_t n) { return (n + kRecordAlignment - 1) & ~(kRecordAlignment - 1); }

struct SegmentHeader {
  std::uint64_t number = 0;
  std::uint64_t first_lsn = 0;  ///< Lsn of the first record in the segment.
};
std::string encode_segment_header(const SegmentHeader& header);
/// Errors: Corruption; NotImplemented for another version or an unknown feature.
Result<SegmentHeader> decode_segment_header(std::string_view bytes);

/// A record consists of this header, the meta part, the second part, and zeros up to a multiple of kRecordAlignment.
struct RecordHeader {
  RecordType type = RecordType::Writes;
  std::uint64_t lsn = 0;
  std::uint32_t meta_bytes = 0;
  std::uint32_t parts_bytes = 0;
  std::uint32_t meta_checksum = 0;

  std::uint64_t bytes() const { return kRecordHeaderBytes + record_aligned(std::uint64_t{meta_bytes} + parts_bytes); }
};
/// `offset` is the offset of the record itself in segment `segment`.
void append_record_header(std::string& out, const RecordHeader& header, std::uint64_t segment, std::uint64_t offset);
std::optional<RecordHeader> decode_record_header(std::string_view bytes, std::uint64_t segment, std::uint64_t offset);

/// One write in a record of type Writes, with its parts in stored form.
struct JournalWrite {
  std::uint64_t uid = 0;  ///< Uid of the bucket.
  MetaEntry entry;        ///< Description of the document, without positions in a file.
  std::string_view header;
  std::string_view body;
};
/// Encodes a write without its parts as kWriteMetaBytes bytes, at `into`.
void encode_write_meta(std::uint64_t uid, const MetaEntry& entry, char* into);
/// Decodes the writes of a record. The views refer to `parts`. Errors: Corruption if anything fails verification.
Result<std::vector<JournalWrite>> decode_writes(std::string_view meta, std::string_view parts);

}  // namespace fjord::slotfile
