#include <cstdint>
#include <string>
#include <string_view>

#include "catalog.h"
#include "fjord/common/check.h"
#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/common/log.h"
#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "journal_format.h"

namespace {

using namespace fjord;

void write(Env& env, const std::string& path, std::string_view bytes) {
  FJORD_CHECK(write_file_atomically(env, path, bytes, false).is_ok());
}

/// Runs the engine's decoders of checksummed data. They accept any bytes without a crash, and decode what they encode
/// to an equal value.
void decode(std::string_view bytes) {
  static_cast<void>(
      slotfile::decode_writes(bytes.substr(0, bytes.size() / 2), bytes.substr(bytes.size() / 2)).has_value());
  const auto edit = slotfile::decode_edit(bytes);
  if (edit) FJORD_CHECK(slotfile::decode_edit(slotfile::encode_edit(*edit)).has_value());
  static_cast<void>(slotfile::decode_segment_header(bytes).has_value());
  static_cast<void>(slotfile::decode_record_header(bytes, 1, slotfile::kSegmentHeaderBytes).has_value());
  static_cast<void>(slotfile::decode_catalog(bytes, 0).has_value());
}

/// Returns a valid segment with one record: its meta part has the bytes before `split`, its second part the rest.
std::string segment_with_record(slotfile::RecordType type, std::string_view bytes, std::size_t split) {
  std::string segment = slotfile::encode_segment_header({.number = 1, .first_lsn = 1});
  const std::string_view meta = bytes.substr(0, split);
  slotfile::append_record_header(segment,
                                 {.type = type,
                                  .lsn = 1,
                                  .meta_bytes = static_cast<std::uint32_t>(meta.size()),
                                  .parts_bytes = static_cast<std::uint32_t>(bytes.size() - meta.size()),
                                  .meta_checksum = checksum32(meta)},
                                 1, segment.size());
  segment += bytes;
  segment.resize(slotfile::record_aligned(segment.size()), '\0');
  return segment;
}

}  // namespace

/// Reads the input as data that the engine reads when it opens. The first byte chooses the kind: journal records and
/// edits by themselves, or the bytes as a journal segment, a record in one, a catalog or a slotfile of an engine, which
/// has to open or to return an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  decode(bytes);
  if (mode % 8 != 0) return 0;  // Only one input in eight opens an engine, which takes a hundred times as long.
  log::set_level(log::Level::Off);
  sim::SimEnv env;
  FJORD_CHECK(env.create_directories("/e").is_ok());
  SlotfileOptions options;
  options.directory = "/e";
  options.journal_segment_bytes = 4096;
  const std::string journal = "/e/" + slotfile::journal_name(0, 1);
  if ((mode & 8) == 0) {
    write(env, journal, bytes);
  } else {
    const auto type = (mode & 16) == 0 ? slotfile::RecordType::Writes : slotfile::RecordType::Edit;
    write(env, journal, segment_with_record(type, bytes, bytes.size() * (mode >> 5) / 7));
  }
  if ((mode & 32) != 0) write(env, "/e/" + slotfile::catalog_name(0, 0), bytes);
  write(env, "/e/" + slotfile::slotfile_name(0), bytes);
  static_cast<void>(SlotfileProvider::open(env, options).has_value());
  return 0;
}
