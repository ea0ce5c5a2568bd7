#include "format_v1.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <unordered_map>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::slotfile::v1 {

namespace {

constexpr std::uint32_t kSlotfileMagic = 0x4c534a46;  // The bytes "FJSL" as a little-endian number.
constexpr std::uint32_t kManifestMagic = 0x4d424a46;  // The bytes "FJBM" as a little-endian number.
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kHeaderCopyBytes = 64;
constexpr std::size_t kHeaderAreaBytes = 4096;
constexpr std::array<std::size_t, 2> kHeaderCopyOffsets = {0, 2048};
constexpr std::size_t kEntryBytes = 40;
constexpr std::size_t kChecksumBytes = 4;
constexpr unsigned kSlotBitsMax = 6;
constexpr std::uint64_t kRegionBytesMax = 0xffffffff;
constexpr std::uint32_t kPartLengthMask = (1U << 27) - 1;
constexpr std::uint32_t kFlagRemoved = 1U << 27;

Status corrupt(std::string message) { return Status(StatusCode::Corruption, std::move(message)); }

Status check_version(std::uint16_t version, std::uint16_t features) {
  if (version == kVersion && features == 0) return Status::ok();
  return Status(StatusCode::NotImplemented,
                fmt::format("format version {} with features {:#x} where version 1 was expected", version, features));
}

constexpr std::uint64_t stored_bytes(std::uint64_t length) { return length == 0 ? 0 : length + kChecksumBytes; }

std::uint64_t entries_begin() { return kHeaderAreaBytes; }
std::uint64_t headers_begin(const FileHeader& header) { return entries_begin() + header.entry_capacity * kEntryBytes; }
std::uint64_t bodies_begin(const FileHeader& header) { return headers_begin(header) + header.header_capacity; }

Result<FileHeader> decode_header_copy(std::string_view copy) {
  if (copy.size() != kHeaderCopyBytes) return corrupt("the file ends within its header");
  ByteReader in(copy);
  if (in.fixed<std::uint32_t>() != kSlotfileMagic) return corrupt("not a slotfile: the magic number is wrong");
  if (load_fixed<std::uint32_t>(copy.data() + kHeaderCopyBytes - kChecksumBytes) !=
      checksum32(copy.substr(0, kHeaderCopyBytes - kChecksumBytes), kSlotfileMagic)) {
    return corrupt("the checksum of the header is wrong");
  }
  const auto version = in.fixed<std::uint16_t>();
  FJORD_TRY(check_version(version, in.fixed<std::uint16_t>()));
  FileHeader header;
  header.bucket = BucketId(in.fixed<std::uint64_t>());
  header.generation = in.fixed<std::uint32_t>();
  header.slot = in.fixed<std::uint16_t>();
  header.slot_bits = in.fixed<std::uint8_t>();
  in.fixed<std::uint8_t>();
  header.entry_capacity = in.fixed<std::uint32_t>();
  in.fixed<std::uint32_t>();
  header.header_capacity = in.fixed<std::uint64_t>();
  header.body_capacity = in.fixed<std::uint64_t>();
  if (header.slot_bits > kSlotBitsMax || header.slot >= (1U << header.slot_bits) ||
      header.header_capacity > kRegionBytesMax || header.body_capacity > kRegionBytesMax) {
    return corrupt("the header has a number beyond its bounds");
  }
  return header;
}

/// Returns nothing if the checksum, a reserved bit or a position is wrong, or if the entry belongs to another slotfile.
std::optional<Entry> decode_entry(const FileHeader& header, std::uint64_t index, std::string_view bytes) {
  const std::uint64_t seed = mix64(header.bucket.raw(), (std::uint64_t{header.slot} << 40) | index);
  if (load_fixed<std::uint32_t>(bytes.data() + kEntryBytes - kChecksumBytes) !=
      checksum32(bytes.substr(0, kEntryBytes - kChecksumBytes), seed)) {
    return std::nullopt;
  }
  const auto header_length_flags = load_fixed<std::uint32_t>(bytes.data() + 28);
  Entry entry;
  entry.timestamp_us = load_fixed<std::uint64_t>(bytes.data());
  entry.gid = GlobalId::from_bytes(bytes.substr(8, sizeof(entry.gid.bytes)));
  entry.header_position = load_fixed<std::uint32_t>(bytes.data() + 20);
  entry.body_position = load_fixed<std::uint32_t>(bytes.data() + 24);
  entry.header_length = header_length_flags & kPartLengthMask;
  entry.removed = (header_length_flags & kFlagRemoved) != 0;
  entry.body_length = load_fixed<std::uint32_t>(bytes.data() + 32);
  const bool reserved_bits =
      (header_length_flags & ~(kPartLengthMask | kFlagRemoved)) != 0 || entry.body_length > kPartLengthMask;
  const bool fits = entry.header_position + stored_bytes(entry.header_length) <= header.header_capacity &&
                    entry.body_position + stored_bytes(entry.body_length) <= header.body_capacity;
  const bool of_slot = ((entry.gid.hash_bits() >> 48) & ((1U << header.slot_bits) - 1)) == header.slot;
  return reserved_bits || !fits || !of_slot ? std::nullopt : std::optional(entry);
}

/// Decodes an entry after correcting the one flipped bit that explains the wrong checksum.
std::optional<Entry> repair_entry(const FileHeader& header, std::uint64_t index, std::string_view bytes) {
  std::string copy(bytes);
  for (std::size_t bit = 0; bit < kEntryBytes * 8; ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    copy[bit / 8] = static_cast<char>(copy[bit / 8] ^ flip);
    if (std::optional<Entry> entry = decode_entry(header, index, copy)) return entry;
    copy[bit / 8] = static_cast<char>(copy[bit / 8] ^ flip);
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> parse_hex(std::string_view text, std::size_t digits) {
  if (text.size() != digits) return std::nullopt;
  for (const char c : text) {
    if (c >= 'A' && c <= 'F') return std::nullopt;
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<Manifest> decode_manifest(std::string_view bytes) {
  if (bytes.size() < kChecksumBytes) return corrupt("the manifest is too short");
  const std::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
  if (load_fixed<std::uint32_t>(bytes.data() + content.size()) != checksum32(content, kManifestMagic)) {
    return corrupt("the checksum of the manifest is wrong");
  }
  ByteReader in(content);
  if (in.fixed<std::uint32_t>() != kManifestMagic) return corrupt("not a manifest: the magic number is wrong");
  const auto version = in.fixed<std::uint16_t>();
  FJORD_TRY(check_version(version, in.fixed<std::uint16_t>()));
  Manifest manifest;
  manifest.bucket = BucketId(in.fixed<std::uint64_t>());
  manifest.generation = in.fixed<std::uint32_t>();
  manifest.slot_bits = in.fixed<std::uint32_t>();
  manifest.replicas.epoch = in.fixed<std::uint64_t>();
  const auto nodes = in.fixed<std::uint32_t>();
  if (!in.ok() || manifest.slot_bits > kSlotBitsMax || in.remaining() != std::size_t{nodes} * sizeof(std::uint16_t)) {
    return corrupt("the manifest is malformed");
  }
  for (std::uint32_t i = 0; i < nodes; ++i) manifest.replicas.nodes.push_back(in.fixed<std::uint16_t>());
  return manifest;
}

Result<FileHeader> read_header(const RandomAccessFile& file) {
  std::string area(kHeaderAreaBytes, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(0, area));
  Status first_error;
  for (const std::size_t offset : kHeaderCopyOffsets) {
    const std::string_view there = std::string_view(area).substr(0, got);
    const Result<FileHeader> header =
        decode_header_copy(there.substr(std::min(offset, there.size()), kHeaderCopyBytes));
    if (header) return header;
    if (first_error) first_error = header.error();
  }
  return first_error;
}

Result<EntryList> read_entries(const RandomAccessFile& file, const FileHeader& header) {
  FJORD_TRY_ASSIGN(const std::uint64_t size, file.size());
  const std::uint64_t there = size < entries_begin() ? 0 : (size - entries_begin()) / kEntryBytes;
  std::string bytes(std::min(header.entry_capacity, there) * kEntryBytes, '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(entries_begin(), bytes));
  EntryList list;
  std::unordered_map<GlobalId, Entry> newest;  // Newest entry by gid, in no order; the result is sorted below.
  // Unreadable entries since the last valid one; they count as lost if a valid entry follows.
  std::uint64_t unreadable = 0;
  for (std::uint64_t index = 0; index < got / kEntryBytes; ++index) {
    const std::string_view stored = std::string_view(bytes).substr(index * kEntryBytes, kEntryBytes);
    if (stored.find_first_not_of('\0') == std::string_view::npos) {
      ++unreadable;
      continue;
    }
    std::optional<Entry> entry = decode_entry(header, index, stored);
    if (!entry) entry = repair_entry(header, index, stored);
    if (entry) {
      list.lost += std::exchange(unreadable, 0);
      Entry& known = newest.try_emplace(entry->gid, *entry).first->second;
      if (entry->timestamp_us > known.timestamp_us) known = *entry;
      continue;
    }
    // An interrupted write leaves one end of an entry empty, and was not acknowledged. Any other invalid entry was
    // acknowledged, so the version that it replaced must not come back.
    ++unreadable;
    if (stored.front() == 0 || stored.back() == 0) continue;
    list.lost += std::exchange(unreadable, 0);
    newest.erase(GlobalId::from_bytes(stored.substr(8, sizeof(GlobalId{}.bytes))));
  }
  for (const auto& [gid, entry] : newest) list.newest.push_back(entry);
  std::sort(list.newest.begin(), list.newest.end(), [](const Entry& a, const Entry& b) { return a.gid < b.gid; });
  return list;
}

Result<std::string> read_part(const RandomAccessFile& file, const FileHeader& header, const Entry& entry, Part part) {
  const bool body = part == Part::Body;
  const std::uint32_t length = body ? entry.body_length : entry.header_length;
  if (length == 0) return std::string();
  const std::uint64_t offset =
      body ? bodies_begin(header) + entry.body_position : headers_begin(header) + entry.header_position;
  std::string bytes(stored_bytes(length), '\0');
  FJORD_TRY_ASSIGN(const std::size_t got, file.read(offset, bytes));
  const std::uint64_t of_id = entry.gid.hash_bits() ^ (std::uint64_t{entry.gid.location_bits()} << 32);
  const std::uint64_t seed = mix64(header.bucket.raw() ^ of_id, entry.timestamp_us * 2 + (body ? 1 : 0));
  if (got != bytes.size() ||
      load_fixed<std::uint32_t>(bytes.data() + length) != checksum32(std::string_view(bytes).substr(0, length), seed)) {
    return corrupt(fmt::format("the part at {} does not verify", offset));
  }
  bytes.resize(length);
  return bytes;
}

std::optional<BucketId> parse_bucket_name(std::string_view name) {
  const std::optional<std::uint64_t> raw = parse_hex<std::uint64_t>(name, 16);
  if (!raw || BucketId(*raw).raw() != *raw) return std::nullopt;
  return BucketId(*raw);
}

std::string slotfile_name(SlotfileName name) { return fmt::format("{:08x}-{:02x}.slot", name.generation, name.slot); }

std::optional<SlotfileName> parse_slotfile_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".slot";
  if (name.size() != 8 + 1 + 2 + kSuffix.size() || name[8] != '-' || !name.ends_with(kSuffix)) return std::nullopt;
  const auto generation = parse_hex<std::uint32_t>(name.substr(0, 8), 8);
  const auto slot = parse_hex<std::uint32_t>(name.substr(9, 2), 2);
  if (!generation || !slot) return std::nullopt;
  return SlotfileName{.generation = *generation, .slot = *slot};
}

}  // namespace fjord::slotfile::v1
