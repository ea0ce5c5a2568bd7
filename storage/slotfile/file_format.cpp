#include "file_format.h"

#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::slotfile {

namespace {

constexpr std::size_t kHeaderChecksumOffset = kFileHeaderBytes - sizeof(std::uint32_t);
constexpr std::size_t kFrameChecksumOffset = kRunFrameBytes - sizeof(std::uint32_t);
constexpr std::size_t kEntryChecksumOffset = kEntryBytes - sizeof(std::uint32_t);

Status corrupt(std::string message) { return Status(StatusCode::Corruption, std::move(message)); }

std::uint64_t place_seed(std::uint32_t number, std::uint64_t offset) {
  return mix64(std::uint64_t{number} + kSlotfileMagic, offset);
}

template <typename T>
std::optional<T> parse_hex(std::string_view text, std::size_t digits) {
  if (text.size() != digits) return std::nullopt;
  for (char c : text) {
    // Only lower-case digits are accepted, so that each number has one file name.
    if (c >= 'A' && c <= 'F') return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string encode_file_header(const FileHeader& header) {
  std::string out;
  put_fixed<std::uint32_t>(out, kSlotfileMagic);
  put_fixed<std::uint16_t>(out, kFormatVersion);
  put_fixed<std::uint16_t>(out, 0);  // feature bits: none
  put_fixed<std::uint32_t>(out, header.number);
  put_fixed<std::uint32_t>(out, 0);
  put_fixed<std::uint64_t>(out, header.bucket.raw());
  out.resize(kHeaderChecksumOffset, '\0');
  put_fixed<std::uint32_t>(out, checksum32(out, kSlotfileMagic));
  return out;
}

Result<FileHeader> decode_file_header(std::string_view bytes) {
  if (bytes.size() != kFileHeaderBytes) return corrupt("the file ends within its header");
  ByteReader in(bytes);
  if (in.fixed<std::uint32_t>() != kSlotfileMagic) return corrupt("not a slotfile: the magic number is wrong");
  const auto version = in.fixed<std::uint16_t>();
  const auto features = in.fixed<std::uint16_t>();
  if (load_fixed<std::uint32_t>(bytes.data() + kHeaderChecksumOffset) !=
      checksum32(bytes.substr(0, kHeaderChecksumOffset), kSlotfileMagic)) {
    return corrupt("the checksum of the header is wrong");
  }
  if (version != kFormatVersion || features != 0) {
    return Status(StatusCode::NotImplemented,
                  fmt::format("format version {} with features {:#x}; this program writes version {} without features",
                              version, features, kFormatVersion));
  }
  FileHeader header;
  header.number = in.fixed<std::uint32_t>();
  in.fixed<std::uint32_t>();
  header.bucket = BucketId(in.fixed<std::uint64_t>());
  return header;
}

std::string encode_run_frame(const RunFrame& frame, std::uint32_t magic, std::uint32_t number, std::uint64_t offset) {
  std::string out;
  put_fixed<std::uint32_t>(out, magic);
  put_fixed<std::uint32_t>(out, frame.entries);
  put_fixed<std::uint64_t>(out, frame.header_bytes);
  put_fixed<std::uint64_t>(out, frame.body_bytes);
  out.resize(kFrameChecksumOffset, '\0');
  put_fixed<std::uint32_t>(out, checksum32(out, place_seed(number, offset)));
  return out;
}

std::optional<RunFrame> decode_run_frame(std::string_view bytes, std::uint32_t magic, std::uint32_t number,
                                         std::uint64_t offset) {
  if (bytes.size() != kRunFrameBytes || load_fixed<std::uint32_t>(bytes.data()) != magic) return std::nullopt;
  if (load_fixed<std::uint32_t>(bytes.data() + kFrameChecksumOffset) !=
      checksum32(bytes.substr(0, kFrameChecksumOffset), place_seed(number, offset))) {
    return std::nullopt;
  }
  RunFrame frame;
  frame.entries = load_fixed<std::uint32_t>(bytes.data() + 4);
  frame.header_bytes = load_fixed<std::uint64_t>(bytes.data() + 8);
  frame.body_bytes = load_fixed<std::uint64_t>(bytes.data() + 16);
  if (frame.header_bytes > kFileBytesMax || frame.body_bytes > kFileBytesMax) return std::nullopt;
  return frame;
}

void encode_entry(const MetaEntry& entry, std::uint32_t number, std::uint64_t offset, char* into) {
  store_fixed(into, entry.timestamp_us);
  std::memcpy(into + 8, entry.gid.bytes.data(), entry.gid.bytes.size());
  store_fixed(into + 20, entry.header_position);
  store_fixed(into + 24, entry.body_position);
  store_fixed(into + 28, entry.header_length_flags);
  store_fixed(into + 32, entry.body_length_flags);
  store_fixed(into + kEntryChecksumOffset, checksum32({into, kEntryChecksumOffset}, place_seed(number, offset)));
}

std::optional<MetaEntry> decode_entry(const char* from, std::uint32_t number, std::uint64_t offset) {
  if (load_fixed<std::uint32_t>(from + kEntryChecksumOffset) !=
      checksum32({from, kEntryChecksumOffset}, place_seed(number, offset))) {
    return std::nullopt;
  }
  MetaEntry entry;
  entry.timestamp_us = load_fixed<std::uint64_t>(from);
  std::memcpy(entry.gid.bytes.data(), from + 8, entry.gid.bytes.size());
  entry.header_position = load_fixed<std::uint32_t>(from + 20);
  entry.body_position = load_fixed<std::uint32_t>(from + 24);
  entry.header_length_flags = load_fixed<std::uint32_t>(from + 28);
  entry.body_length_flags = load_fixed<std::uint32_t>(from + 32);
  constexpr std::uint32_t kKnown = kPartLengthMask | kCompressionMask | kFlagRemoved;
  static_assert(kFlagRemoved == kFlagVoid);
  const std::uint32_t known = entry.removed() ? kKnown | kFlagToken : kKnown;
  if ((entry.header_length_flags & ~known) != 0 || (entry.body_length_flags & ~kKnown) != 0) return std::nullopt;
  return entry;
}

std::optional<MetaEntry> repair_entry(const char* from, std::uint32_t number, std::uint64_t offset) {
  std::array<char, kEntryBytes> bytes;
  std::memcpy(bytes.data(), from, kEntryBytes);
  for (std::size_t bit = 0; bit < kEntryBytes * 8; ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    if (std::optional<MetaEntry> entry = decode_entry(bytes.data(), number, offset)) return entry;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
  return std::nullopt;
}

std::uint64_t part_seed(const GlobalId& gid, std::uint64_t timestamp_us, Part part) {
  const std::uint64_t of_id = gid.hash_bits() ^ (std::uint64_t{gid.location_bits()} << 32);
  return mix64(of_id, timestamp_us * 2 + (part == Part::Body ? 1 : 0));
}

std::string slotfile_name(std::uint32_t number) { return fmt::format("{:08x}.slot", number); }

std::optional<std::uint32_t> parse_slotfile_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".slot";
  if (!name.ends_with(kSuffix)) return std::nullopt;
  return parse_hex<std::uint32_t>(name.substr(0, name.size() - kSuffix.size()), 8);
}

std::string journal_name(unsigned stripe, std::uint64_t segment) {
  return fmt::format("journal-{:02x}-{:016x}", stripe, segment);
}

std::optional<std::uint64_t> parse_journal_name(std::string_view name, unsigned stripe) {
  const std::string prefix = fmt::format("journal-{:02x}-", stripe);
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_hex<std::uint64_t>(name.substr(prefix.size()), 16);
}

std::string catalog_name(unsigned stripe, unsigned copy) {
  return fmt::format("catalog-{:02x}.{}", stripe, copy == 0 ? 'a' : 'b');
}

}  // namespace fjord::slotfile
