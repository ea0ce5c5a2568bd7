#include "slotfile_format.h"

#include <array>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"

namespace fjord::slotfile {

namespace {

constexpr std::size_t kHeaderChecksumOffset = kHeaderCopyBytes - sizeof(std::uint32_t);
constexpr std::size_t kEntryChecksumOffset = kEntryBytes - sizeof(std::uint32_t);
constexpr std::uint64_t kHeaderSeed = kSlotfileMagic;
constexpr std::uint64_t kManifestSeed = kManifestMagic;

Status corrupt(std::string message) { return Status(StatusCode::Corruption, std::move(message)); }

Status check_version(std::uint16_t version, std::uint16_t features) {
  if (version == kFormatVersion && features == 0) return Status::ok();
  return Status(StatusCode::NotImplemented,
                fmt::format("format version {} with features {:#x}; this program knows version {} without features",
                            version, features, kFormatVersion));
}

template <typename T>
std::optional<T> parse_hex(std::string_view text, std::size_t digits) {
  if (text.size() != digits) return std::nullopt;
  for (char c : text) {
    if (c >= 'A' && c <= 'F') return std::nullopt;  // one name for one number
  }
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string encode_header_copy(const FileHeader& header) {
  std::string out;
  put_fixed<std::uint32_t>(out, kSlotfileMagic);
  put_fixed<std::uint16_t>(out, kFormatVersion);
  put_fixed<std::uint16_t>(out, 0);  // features
  put_fixed<std::uint64_t>(out, header.bucket.raw());
  put_fixed<std::uint32_t>(out, header.generation);
  put_fixed<std::uint16_t>(out, header.slot);
  put_fixed<std::uint8_t>(out, header.slot_bits);
  put_fixed<std::uint8_t>(out, 0);
  put_fixed<std::uint32_t>(out, header.entry_capacity);
  put_fixed<std::uint32_t>(out, 0);
  put_fixed<std::uint64_t>(out, header.header_capacity);
  put_fixed<std::uint64_t>(out, header.body_capacity);
  out.resize(kHeaderChecksumOffset, '\0');
  put_fixed<std::uint32_t>(out, checksum32(out, kHeaderSeed));
  return out;
}

}  // namespace

std::string encode_header_area(const FileHeader& header) {
  const std::string copy = encode_header_copy(header);
  std::string area(kHeaderAreaBytes, '\0');
  for (const std::uint64_t offset : kHeaderCopyOffsets) area.replace(offset, copy.size(), copy);
  return area;
}

Result<FileHeader> decode_header_copy(std::string_view copy) {
  if (copy.size() != kHeaderCopyBytes) return corrupt("the file ends within its header");
  ByteReader in(copy);
  if (in.fixed<std::uint32_t>() != kSlotfileMagic) return corrupt("not a slotfile: the magic number is wrong");
  const std::uint32_t checksum = load_fixed<std::uint32_t>(copy.data() + kHeaderChecksumOffset);
  if (checksum != checksum32(copy.substr(0, kHeaderChecksumOffset), kHeaderSeed)) {
    return corrupt("the checksum of the header is wrong");
  }
  const auto version = in.fixed<std::uint16_t>();
  const auto features = in.fixed<std::uint16_t>();
  FJORD_TRY(check_version(version, features));
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

std::uint64_t entry_seed(BucketId bucket, std::uint32_t slot, std::uint64_t index) {
  return mix64(bucket.raw(), (std::uint64_t{slot} << 40) | index);
}

void encode_entry(const MetaEntry& entry, std::uint64_t seed, char* into) {
  store_fixed(into, entry.timestamp_us);
  std::memcpy(into + 8, entry.gid.bytes.data(), entry.gid.bytes.size());
  store_fixed(into + 20, entry.header_position);
  store_fixed(into + 24, entry.body_position);
  store_fixed(into + 28, entry.header_length_flags);
  store_fixed(into + 32, entry.body_length);
  store_fixed(into + kEntryChecksumOffset, checksum32({into, kEntryChecksumOffset}, seed));
}

std::optional<MetaEntry> decode_entry(const char* from, std::uint64_t seed) {
  if (load_fixed<std::uint32_t>(from + kEntryChecksumOffset) != checksum32({from, kEntryChecksumOffset}, seed)) {
    return std::nullopt;
  }
  MetaEntry entry;
  entry.timestamp_us = load_fixed<std::uint64_t>(from);
  std::memcpy(entry.gid.bytes.data(), from + 8, entry.gid.bytes.size());
  entry.header_position = load_fixed<std::uint32_t>(from + 20);
  entry.body_position = load_fixed<std::uint32_t>(from + 24);
  entry.header_length_flags = load_fixed<std::uint32_t>(from + 28);
  entry.body_length = load_fixed<std::uint32_t>(from + 32);
  const bool reserved_bits =
      (entry.header_length_flags & ~(kPartLengthMask | kFlagsMask)) != 0 || (entry.body_length & ~kPartLengthMask) != 0;
  if (reserved_bits) return std::nullopt;
  return entry;
}

std::optional<MetaEntry> repair_entry(const char* from, std::uint64_t seed) {
  std::array<char, kEntryBytes> bytes;
  std::memcpy(bytes.data(), from, kEntryBytes);
  for (std::size_t bit = 0; bit < kEntryBytes * 8; ++bit) {
    const char flip = static_cast<char>(1 << (bit % 8));
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
    if (std::optional<MetaEntry> entry = decode_entry(bytes.data(), seed)) return entry;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ flip);
  }
  return std::nullopt;
}

std::uint64_t part_seed(BucketId bucket, const GlobalId& gid, std::uint64_t timestamp_us, Part part) {
  const std::uint64_t of_id = gid.hash_bits() ^ (std::uint64_t{gid.location_bits()} << 32);
  return mix64(bucket.raw() ^ of_id, timestamp_us * 2 + (part == Part::Body ? 1 : 0));
}

std::string encode_manifest(const Manifest& manifest) {
  std::string out;
  put_fixed<std::uint32_t>(out, kManifestMagic);
  put_fixed<std::uint16_t>(out, kFormatVersion);
  put_fixed<std::uint16_t>(out, 0);  // features
  put_fixed<std::uint64_t>(out, manifest.bucket.raw());
  put_fixed<std::uint32_t>(out, manifest.generation);
  put_fixed<std::uint32_t>(out, manifest.slot_bits);
  put_fixed<std::uint64_t>(out, manifest.replicas.epoch);
  put_fixed<std::uint32_t>(out, static_cast<std::uint32_t>(manifest.replicas.nodes.size()));
  for (const std::uint16_t node : manifest.replicas.nodes) put_fixed<std::uint16_t>(out, node);
  put_fixed<std::uint32_t>(out, checksum32(out, kManifestSeed));
  return out;
}

Result<Manifest> decode_manifest(std::string_view bytes) {
  if (bytes.size() < sizeof(std::uint32_t)) return corrupt("the manifest is too short");
  const std::string_view content = bytes.substr(0, bytes.size() - sizeof(std::uint32_t));
  if (load_fixed<std::uint32_t>(bytes.data() + content.size()) != checksum32(content, kManifestSeed)) {
    return corrupt("the checksum of the manifest is wrong");
  }
  ByteReader in(content);
  if (in.fixed<std::uint32_t>() != kManifestMagic) return corrupt("not a manifest: the magic number is wrong");
  const auto version = in.fixed<std::uint16_t>();
  const auto features = in.fixed<std::uint16_t>();
  FJORD_TRY(check_version(version, features));
  Manifest manifest;
  manifest.bucket = BucketId(in.fixed<std::uint64_t>());
  manifest.generation = in.fixed<std::uint32_t>();
  const auto slot_bits = in.fixed<std::uint32_t>();
  manifest.slot_bits = static_cast<std::uint8_t>(slot_bits);
  manifest.replicas.epoch = in.fixed<std::uint64_t>();
  const auto nodes = in.fixed<std::uint32_t>();
  if (!in.ok() || slot_bits > kSlotBitsMax || in.remaining() != std::size_t{nodes} * sizeof(std::uint16_t)) {
    return corrupt("the manifest is malformed");
  }
  for (std::uint32_t i = 0; i < nodes; ++i) manifest.replicas.nodes.push_back(in.fixed<std::uint16_t>());
  return manifest;
}

std::string bucket_directory_name(BucketId bucket) { return fmt::format("{:016x}", bucket.raw()); }

std::optional<BucketId> parse_bucket_directory_name(std::string_view name) {
  const std::optional<std::uint64_t> raw = parse_hex<std::uint64_t>(name, 16);
  if (!raw || BucketId(*raw).raw() != *raw) return std::nullopt;
  return BucketId(*raw);
}

std::string slotfile_name(std::uint32_t generation, std::uint32_t slot) {
  return fmt::format("{:08x}-{:02x}.slot", generation, slot);
}

std::optional<SlotfileName> parse_slotfile_name(std::string_view name) {
  constexpr std::string_view kSuffix = ".slot";
  if (name.size() != 8 + 1 + 2 + kSuffix.size() || name[8] != '-' || name.substr(11) != kSuffix) return std::nullopt;
  const auto generation = parse_hex<std::uint32_t>(name.substr(0, 8), 8);
  const auto slot = parse_hex<std::uint32_t>(name.substr(9, 2), 2);
  if (!generation || !slot) return std::nullopt;
  return SlotfileName{.generation = *generation, .slot = *slot};
}

}  // namespace fjord::slotfile
