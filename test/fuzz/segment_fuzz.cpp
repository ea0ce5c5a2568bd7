#include <cstdint>
#include <string>
#include <string_view>

#include "disk_index.h"
#include "fjord/common/check.h"
#include "fjord/common/log.h"
#include "fjord/sim/sim_env.h"
#include "manifest.h"
#include "page_file.h"
#include "segment.h"

namespace {

using namespace fjord;
using namespace fjord::search;

/// Decodes the bytes as each part of a segment, and uses what is decoded.
void decode(std::string_view bytes) {
  const auto directory = SegmentDirectory::decode(bytes, bytes.size());
  if (directory) FJORD_CHECK(SegmentDirectory::decode(directory->encode(), bytes.size()).has_value());
  static_cast<void>(Manifest::decode(bytes).has_value());
  static_cast<void>(for_each_document(bytes, [](const StoredDocument&) { return true; }));
  static_cast<void>(for_each_posting(bytes, [](const Posting&) {}));
}

/// Reads all of a segment whose pages verify and whose content is the input.
void read_segment(std::string_view content, std::uint64_t directory_offset) {
  sim::SimEnv env;
  FJORD_CHECK(env.create_directories("/e").is_ok());
  const auto writer = PageFileWriter::create(env, segment_path("/e", 1), 1);
  FJORD_CHECK(writer.has_value());
  std::string header;
  put_fixed(header, kSegmentMagic);
  put_fixed(header, kIndexFormatVersion);
  put_fixed(header, std::uint64_t{1});
  FJORD_CHECK((*writer)->append(header + std::string(content)).is_ok());
  FJORD_CHECK((*writer)->finish().is_ok());
  ListCache cache({.bytes_max = 1 << 16});
  IndexCounts counts;
  const std::uint64_t offset = header.size() + directory_offset;
  const SegmentPlace place{
      .number = 1, .directory_offset = offset, .directory_bytes = header.size() + content.size() - offset};
  const auto segment = Segment::open(env, "/e", place, cache, counts);
  if (!segment) return;
  for (const auto& word : (*segment)->directory().words) {
    static_cast<void>((*segment)->for_each_keyword(word.word, [](const KeywordEntry&) {}).is_ok());
  }
  for (const DocumentList list : kDocumentLists) {
    static_cast<void>((*segment)->for_each_in(list, {}, BucketId().span(), [](const Segment::Found&) {}).is_ok());
    for (const auto& run : (*segment)->directory().of(list).runs) {
      static_cast<void>((*segment)->find(list, run.first.second).has_value());
    }
  }
  static_cast<void>((*segment)->kill_positions(0, BucketId().span() / 2).is_ok());
}

}  // namespace

/// The files of a keyword index: each decoder by itself, and a segment with valid checksums around any content. The
/// first byte says where the directory begins, as a part of the rest.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  log::set_level(log::Level::Off);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  decode(bytes);
  read_segment(bytes, bytes.size() * data[0] / 255);
  return 0;
}
