#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/document/bucket_id.h"
#include "fjord/document/document_id.h"
#include "fjord/document/timestamp.h"
#include "fjord/storage/spi/persistence_provider.h"

/// Constants and codecs of slotfiles, described in storage/FORMAT.md. Any change here changes the format.
namespace fjord::slotfile {

inline constexpr std::uint32_t kSlotfileMagic = 0x4c534a46;    // The bytes "FJSL" as a little-endian number.
inline constexpr std::uint32_t kRunHeaderMagic = 0x4e524a46;   // The bytes "FJRN" as a little-endian number.
inline constexpr std::uint32_t kRunTrailerMagic = 0x45524a46;  // The bytes "FJRE" as a little-endian number.
inline constexpr std::uint16_t kFormatVersion = 2;

inline constexpr std::uint64_t kFileHeaderBytes = 64;
inline constexpr std::uint64_t kRunFrameBytes = 64;
inline constexpr std::size_t kEntryBytes = 40;
inline constexpr std::size_t kPartChecksumBytes = 4;
/// A bucket's documents are divided into 64 cells by the top bits of their hash. A slotfile holds 2^n neighbouring
/// cells.
inline constexpr unsigned kCellBits = 6;
inline constexpr unsigned kCells = 1U << kCellBits;
/// Maximum size of a slotfile: positions in a file have 32 bits.
inline constexpr std::uint64_t kFileBytesMax = 0xffff0000;
/// Lengths of parts have 27 bits, enough for kPartBytesMax.
inline constexpr std::uint32_t kPartLengthMask = (1U << 27) - 1;
/// Position of the compression: two bits in each of the two length words.
inline constexpr unsigned kCompressionShift = 28;
inline constexpr std::uint32_t kCompressionMask = 3U << kCompressionShift;
inline constexpr std::uint32_t kFlagRemoved = 1U << 27;  ///< Bit in header_length_flags: the entry is a remove entry.
inline constexpr std::uint32_t kFlagToken = 1U << 30;    ///< Bit in header_length_flags: the remove entry is a token.
inline constexpr std::uint32_t kFlagVoid = 1U << 27;     ///< Bit in body_length_flags: the entry holds nothing.

enum class Part { Header, Body };

/// A metadata entry. Positions count from the beginning of the file. Lengths do not include the checksum that follows a
/// part. A part of length 0 takes no space. The "header" of a remove entry is the document id.
struct MetaEntry {
  static constexpr std::uint16_t kHeld = 0xffff;
  static constexpr std::uint16_t kGone = 0xfffe;

  std::uint64_t timestamp_us = 0;
  std::uint32_t header_position = 0;
  std::uint32_t body_position = 0;
  std::uint32_t header_length_flags = 0;
  std::uint32_t body_length_flags = 0;
  GlobalId gid;
  /// Not stored: ordinal of the slot's file that contains the entry. kHeld: the entry is not in a file yet; positions
  /// refer to the slot's held run. kGone: the entry was removed from the index.
  std::uint16_t file = 0;

  bool removed() const { return (header_length_flags & kFlagRemoved) != 0; }
  /// Returns false for tokens that were written before this flag existed.
  bool is_token() const { return (header_length_flags & kFlagToken) != 0; }
  bool is_void() const { return (body_length_flags & kFlagVoid) != 0; }
  bool held() const { return file == kHeld; }
  std::uint32_t header_length() const { return header_length_flags & kPartLengthMask; }
  std::uint32_t body_length() const { return body_length_flags & kPartLengthMask; }
  std::uint32_t length(Part part) const { return part == Part::Header ? header_length() : body_length(); }
  std::uint32_t position(Part part) const { return part == Part::Header ? header_position : body_position; }
  spi::Compression compression(Part part) const {
    const std::uint32_t flags = part == Part::Header ? header_length_flags : body_length_flags;
    return static_cast<spi::Compression>((flags & kCompressionMask) >> kCompressionShift);
  }
  Timestamp timestamp() const { return Timestamp{timestamp_us}; }
  /// Returns the bytes of the document's parts as stored; 0 for a remove entry.
  std::uint64_t document_bytes() const {
    return removed() ? 0 : std::uint64_t{header_length()} + std::uint64_t{body_length()};
  }
  /// Returns the bytes that the entry and its parts take in a slotfile.
  std::uint64_t stored_bytes() const;

  friend bool operator==(const MetaEntry&, const MetaEntry&) = default;
};
static_assert(sizeof(MetaEntry) == kEntryBytes);

/// Returns the bytes that a part takes in its file, including its checksum.
constexpr std::uint64_t stored_bytes(std::uint64_t length) { return length == 0 ? 0 : length + kPartChecksumBytes; }
inline std::uint64_t MetaEntry::stored_bytes() const {
  return kEntryBytes + slotfile::stored_bytes(header_length()) + slotfile::stored_bytes(body_length());
}

/// The first bytes of a slotfile, for people and for checks. Readers need only the catalog and the runs.
struct FileHeader {
  std::uint32_t number = 0;
  BucketId bucket;  ///< The bucket that the file was made for.
};
std::string encode_file_header(const FileHeader& header);
/// Errors: Corruption; NotImplemented for another version or an unknown feature.
Result<FileHeader> decode_file_header(std::string_view bytes);

/// A run: frame, metadata entries, header parts, body parts, and the frame a second time.
struct RunFrame {
  std::uint32_t entries = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t body_bytes = 0;

  std::uint64_t entries_bytes() const { return std::uint64_t{entries} * kEntryBytes; }
  std::uint64_t bytes() const { return 2 * kRunFrameBytes + entries_bytes() + header_bytes + body_bytes; }

  friend bool operator==(const RunFrame&, const RunFrame&) = default;
};
/// `offset` is the offset of the frame itself in file `number`.
std::string encode_run_frame(const RunFrame& frame, std::uint32_t magic, std::uint32_t number, std::uint64_t offset);
std::optional<RunFrame> decode_run_frame(std::string_view bytes, std::uint32_t magic, std::uint32_t number,
                                         std::uint64_t offset);

/// `offset` is the offset of the entry itself in file `number`.
void encode_entry(const MetaEntry& entry, std::uint32_t number, std::uint64_t offset, char* into);
/// Returns nothing if the checksum or a reserved bit is wrong.
std::optional<MetaEntry> decode_entry(const char* from, std::uint32_t number, std::uint64_t offset);
/// Decodes an entry after correcting the one flipped bit that explains the wrong checksum; returns nothing if there is
/// no such bit.
std::optional<MetaEntry> repair_entry(const char* from, std::uint32_t number, std::uint64_t offset);

/// Returns the seed of a document part's checksum. The seed depends on the document and its version, not on the
/// position, so that parts can be moved unchanged. A part in the place of another document's part fails verification.
std::uint64_t part_seed(const GlobalId& gid, std::uint64_t timestamp_us, Part part);

inline unsigned cell_of(const GlobalId& gid) { return static_cast<unsigned>(gid.hash_bits() >> (64 - kCellBits)); }

inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// Returns for example "0000001f.slot".
std::string slotfile_name(std::uint32_t number);
std::optional<std::uint32_t> parse_slotfile_name(std::string_view name);
/// Returns for example "journal-01-0000000000000004": stripe and segment.
std::string journal_name(unsigned stripe, std::uint64_t segment);
std::optional<std::uint64_t> parse_journal_name(std::string_view name, unsigned stripe);
/// Returns for example "catalog-01.a" or "catalog-01.b": stripe and copy.
std::string catalog_name(unsigned stripe, unsigned copy);

}  // namespace fjord::slotfile
