#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/sim/sim_env.h"
#include "part_codec.h"
#include "slot_file.h"

namespace {

using namespace fjord;

constexpr std::uint32_t kNumber = 3;
constexpr std::uint64_t kRunOffset = slotfile::kFileHeaderBytes;
constexpr std::uint64_t kEntriesOffset = kRunOffset + slotfile::kRunFrameBytes;

/// Writes the right checksum of a part of an entry, if the part lies in the file.
void seal_part(std::string& file, const slotfile::MetaEntry& entry, slotfile::Part part) {
  const std::uint64_t begin = entry.position(part);
  const std::uint64_t length = entry.length(part);
  if (length == 0 || begin < kEntriesOffset || begin + length + slotfile::kPartChecksumBytes > file.size()) return;
  const std::uint64_t seed = slotfile::part_seed(entry.gid, entry.timestamp_us, part);
  store_fixed(file.data() + begin + length, checksum32(std::string_view(file).substr(begin, length), seed));
}

/// Writes the right checksums of the entries and their parts, so that the reader follows them. Lengths are cut to 16
/// bits.
void seal(std::string& file, std::uint64_t entries) {
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t at = kEntriesOffset + i * slotfile::kEntryBytes;
    slotfile::MetaEntry entry;
    const char* stored = file.data() + at;
    entry.timestamp_us = load_fixed<std::uint64_t>(stored);
    entry.gid = GlobalId::from_bytes({stored + 8, sizeof(entry.gid.bytes)});
    entry.header_position = load_fixed<std::uint32_t>(stored + 20);
    entry.body_position = load_fixed<std::uint32_t>(stored + 24);
    entry.header_length_flags = load_fixed<std::uint32_t>(stored + 28) & 0xf800ffff;
    entry.body_length_flags = load_fixed<std::uint32_t>(stored + 32) & 0xf800ffff;
    slotfile::encode_entry(entry, kNumber, at, file.data() + at);
    for (const slotfile::Part part : {slotfile::Part::Header, slotfile::Part::Body}) seal_part(file, entry, part);
  }
}

void read_entry(slotfile::SlotFile& file, const slotfile::MetaEntry& entry) {
  std::string stored;
  std::string plain;
  for (const slotfile::Part part : {slotfile::Part::Header, slotfile::Part::Body}) {
    if (!file.read_part(entry, part, stored)) continue;
    static_cast<void>(slotfile::decompress(stored, entry.compression(part), plain).is_ok());
  }
}

}  // namespace

/// Slotfiles with a valid header and first frame: the iteration over the rest ends, and reads no part outside of the
/// file. One bit of the first byte says whether entries and parts get the right checksums, another whether the run has
/// its end. The second byte is the number of entries.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool sealed = (data[0] & 1) != 0;
  const bool ended = (data[0] & 2) != 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::uint64_t entries = std::min<std::uint64_t>(data[1], rest.size() / slotfile::kEntryBytes);
  const slotfile::RunFrame frame{.entries = static_cast<std::uint32_t>(entries),
                                 .header_bytes = rest.size() - entries * slotfile::kEntryBytes,
                                 .body_bytes = 0};
  std::string bytes = slotfile::encode_file_header({.number = kNumber, .bucket = BucketId(8, 1)});
  bytes += slotfile::encode_run_frame(frame, slotfile::kRunHeaderMagic, kNumber, kRunOffset);
  bytes += rest;
  if (sealed) seal(bytes, entries);
  if (ended) bytes += slotfile::encode_run_frame(frame, slotfile::kRunTrailerMagic, kNumber, bytes.size());

  sim::SimEnv env;
  FJORD_CHECK(env.create_directories("/e").is_ok());
  SlotfileOptions options;
  options.directory = "/e";
  slotfile::EngineContext context(env, options);
  FJORD_CHECK(write_file_atomically(env, "/e/" + slotfile::slotfile_name(kNumber), bytes, false).is_ok());
  slotfile::SlotFile slot_file(context, kNumber, bytes.size());
  std::uint64_t valid_entries = 0;
  const auto corrupt = slot_file.walk([&](const slotfile::MetaEntry& entry, bool valid) {
    valid_entries += valid ? 1 : 0;
    if (valid) read_entry(slot_file, entry);
  });
  FJORD_CHECK(corrupt.has_value());
  FJORD_CHECK(valid_entries <= bytes.size() / slotfile::kEntryBytes);
  return 0;
}
