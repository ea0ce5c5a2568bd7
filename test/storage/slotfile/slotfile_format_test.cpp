#include "slotfile_format.h"

#include "fjord/common/random.h"
#include "slot_index.h"

namespace fjord::slotfile {

namespace {

GlobalId some_gid(Random& random) {
  GlobalId gid;
  for (std::uint8_t& byte : gid.bytes) byte = static_cast<std::uint8_t>(random.next());
  return gid;
}

}  // namespace

TEST_CASE("slotfile format: an entry has 40 bytes and holds positions up to 4 GiB and parts of 64 MiB") {
  Random random(1);
  MetaEntry entry{.timestamp_us = ~std::uint64_t{0},
                  .header_position = 0xffffffff,
                  .body_position = 0xfffffffe,
                  .header_length_flags = (64U << 20) | kFlagRemoved,
                  .body_length = 64U << 20,
                  .gid = some_gid(random)};
  CHECK(entry.removed());
  CHECK(entry.header_length() == 64U << 20);
  char bytes[kEntryBytes];
  encode_entry(entry, 5, bytes);
  CHECK(decode_entry(bytes, 5) == entry);
  CHECK_FALSE(decode_entry(bytes, 6));
}

TEST_CASE("slotfile format: any flipped bit of an entry is found and turned back, two are only found") {
  Random random(2);
  const MetaEntry entry{.timestamp_us = 77,
                        .header_position = 1000,
                        .body_position = 2000,
                        .header_length_flags = 30,
                        .body_length = 40,
                        .gid = some_gid(random)};
  for (std::size_t bit = 0; bit < kEntryBytes * 8; ++bit) {
    char bytes[kEntryBytes];
    encode_entry(entry, 9, bytes);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(decode_entry(bytes, 9));
    CHECK(repair_entry(bytes, 9) == entry);
    const std::size_t other = (bit + 37) % (kEntryBytes * 8);
    bytes[other / 8] = static_cast<char>(bytes[other / 8] ^ (1 << other % 8));
    CHECK_FALSE(repair_entry(bytes, 9));
  }
}

TEST_CASE("slotfile format: the seeds of an entry differ by bucket, slotfile and index; those of a part by document") {
  const BucketId bucket(8, 1);
  CHECK(entry_seed(bucket, 0, 1) != entry_seed(bucket, 1, 0));
  CHECK(entry_seed(bucket, 0, 1) != entry_seed(bucket, 0, 2));
  CHECK(entry_seed(bucket, 0, 1) != entry_seed(BucketId(8, 2), 0, 1));
  Random random(3);
  const GlobalId gid = some_gid(random);
  CHECK(part_seed(bucket, gid, 1, Part::Header) != part_seed(bucket, gid, 1, Part::Body));
  CHECK(part_seed(bucket, gid, 1, Part::Header) != part_seed(bucket, gid, 2, Part::Header));
  CHECK(part_seed(bucket, gid, 1, Part::Header) != part_seed(bucket, some_gid(random), 1, Part::Header));
}

TEST_CASE("slotfile format: either copy of the header is enough") {
  const FileHeader header{.bucket = BucketId(8, 3),
                          .generation = 4,
                          .slot = 5,
                          .slot_bits = 3,
                          .entry_capacity = 100,
                          .header_capacity = 1000,
                          .body_capacity = 10000};
  const std::string area = encode_header_area(header);
  CHECK(area.size() == kHeaderAreaBytes);
  for (const std::uint64_t offset : kHeaderCopyOffsets) {
    CHECK(decode_header_copy(std::string_view(area).substr(offset, kHeaderCopyBytes)).value() == header);
  }
  CHECK(header.file_bytes() == 4096 + 100 * 40 + 1000 + 10000);
}

TEST_CASE("slotfile format: the manifest keeps what it says, and no byte of it changes unnoticed") {
  const Manifest manifest{
      .bucket = BucketId(8, 3), .generation = 7, .slot_bits = 6, .replicas = {.epoch = 9, .nodes = {1, 65535, 2}}};
  const std::string bytes = encode_manifest(manifest);
  CHECK(decode_manifest(bytes).value() == manifest);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x40);
    CHECK_FALSE(decode_manifest(changed).has_value());
    CHECK_FALSE(decode_manifest(std::string_view(bytes).substr(0, at)).has_value());
  }
}

TEST_CASE("slotfile format: names of files and folders are read back, others are not") {
  CHECK(slotfile_name(0x1a, 3) == "0000001a-03.slot");
  CHECK(parse_slotfile_name("0000001a-03.slot")->generation == 0x1a);
  CHECK(parse_slotfile_name("0000001a-03.slot")->slot == 3);
  for (const char* name : {"0000001A-03.slot", "0000001a-03.slot.tmp", "0000001a-3.slot", "manifest", "", "-", "xx"}) {
    CHECK_FALSE(parse_slotfile_name(name));
  }
  const BucketId bucket(8, 0x12);
  CHECK(parse_bucket_directory_name(bucket_directory_name(bucket)) == bucket);
  CHECK_FALSE(parse_bucket_directory_name("20000000000fff12"));  // bits beyond the count
  CHECK_FALSE(parse_bucket_directory_name("lost+found"));
}

TEST_CASE("slot index: finds what was inserted and nothing else, also after taking back") {
  Random random(4);
  SlotIndex index;
  std::vector<GlobalId> gids;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    gids.push_back(some_gid(random));
    if (i % 3 == 0)
      gids.back().bytes = {
          1, 2, 3, 4, 5, 6, 7, 8, 0, 0, static_cast<std::uint8_t>(i >> 8), static_cast<std::uint8_t>(i)};
    index.reserve(index.size() + 2);
    CHECK(index.insert({.gid = gids[i]}) == i);
    const GlobalId extra = some_gid(random);
    index.insert({.gid = extra});
    index.remove_last();
    if (index.find(extra) != SlotIndex::kNone) FAIL("found what was taken back");
  }
  for (std::uint32_t i = 0; i < 5000; ++i) {
    if (index.find(gids[i]) != i) FAIL("not found: " << i);
    if (index.find(some_gid(random)) != SlotIndex::kNone) FAIL("found what is not there");
  }
  CHECK(index.memory_bytes() / index.size() <= 80);
}

}  // namespace fjord::slotfile
