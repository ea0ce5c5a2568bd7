// Writes the binary seeds again after a format has changed: make_seeds <test/fuzz/corpus>.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "catalog.h"
#include "fjord/common/check.h"
#include "fjord/document/document.h"
#include "fjord/document/document_update.h"
#include "fjord/document/json.h"
#include "fjord/rpc/codec.h"
#include "fjord/sim/sim_env.h"
#include "fuzz_schema.h"
#include "journal_format.h"
#include "part_codec.h"
#include "random_message.h"
#include "slot_file.h"

namespace {

using namespace fjord;

std::filesystem::path folder;

void save(std::string_view target, std::string_view name, std::string_view bytes) {
  std::filesystem::create_directories(folder / target);
  std::ofstream file(folder / target / name, std::ios::binary);
  file << bytes;
  FJORD_CHECK(file.good());
}

Document sample_document() {
  Document document(*testing::fuzz_types()->find("item"), *DocumentId::parse("id:ns:item:n=5:x"));
  FJORD_CHECK(document.set("title", "some title").is_ok());
  FJORD_CHECK(document.set("size", std::int32_t{7}).is_ok());
  return document;
}

void documents() {
  const auto& types = *testing::fuzz_types();
  const std::string_view json =
      R"({"put":"id:ns:item:n=5:x","fields":{"title":"t","size":3,"big":-1,"price":1.5,"flag":true,"tags":["a","b"],)"
      R"("counts":{"a":1},"pairs":[{"name":"n","weight":1.5}],"names":{"k":7},"bytes":"AAECAw=="}})";
  const auto put = parse_feed_operation(types, json);
  FJORD_CHECK(put.has_value() && put->document.has_value());
  const std::string parts = put->document->header + put->document->body;
  const auto split = static_cast<char>((put->document->header.size() * 255 + parts.size() - 1) / parts.size());
  save("wire", "all_fields.bin", std::string(1, split) + parts);

  const auto update = DocumentUpdate::from_json(
      types, R"({"update":"id:ns:item::x","fields":{"size":{"increment":2},"names{k}":{"assign":4},)"
             R"("tags":{"add":["z"]},"pairs":{"assign":[{"name":"q"}]}}})");
  FJORD_CHECK(update.has_value());
  save("update", "encoded.bin", update->encode());

  const EncodedDocument encoded = encode(sample_document());
  DocBlockBuilder block;
  const DocumentId id = *DocumentId::parse("id:ns:item:n=5:x");
  block.add({.gid = id.gid(), .timestamp = Timestamp{9}, .id = id.str(), .header = encoded.header, .body = "body"});
  block.add({.gid = id.gid(), .timestamp = Timestamp{10}, .removed = true, .id = id.str(), .header = {}, .body = {}});
  save("docblock", "put_and_remove.bin", block.take());
  save("docblock", "state.txt", "version:3 bits:16 distributor:2 storage:4 .1.s:d .3.s:r .3.m:disk");
}

void frames() {
  Random random(1);
  rpc::test::for_each_call([&]<std::size_t I>() {
    const auto protocol = I % 2 == 0 ? rpc::WireProtocol::Compact : rpc::WireProtocol::Binary;
    const char* name = std::variant_alternative_t<I, rpc::Request>::kName;
    std::string request;
    do {
      request = rpc::encode_request(rpc::test::random_alternative<rpc::Request, I>(random), 1, protocol);
    } while (request.size() > 600);
    save("frame", std::string(name) + ".request", request);
    std::string reply;
    do {
      reply = rpc::encode_reply({name, 1, protocol}, rpc::test::random_alternative<rpc::Reply, I>(random));
    } while (reply.size() > 600);
    save("frame", std::string(name) + ".reply", reply);
  });
}

/// Writes seeds as the target reads them: two bytes, the entries, the parts. Positions are those in the resulting file.
void slotfiles() {
  const EncodedDocument encoded = encode(sample_document());
  const DocumentId id = *DocumentId::parse("id:ns:item:n=5:x");
  const std::uint64_t parts_at = slotfile::kFileHeaderBytes + slotfile::kRunFrameBytes + 3 * slotfile::kEntryBytes;
  std::string parts = encoded.header + "....";
  slotfile::MetaEntry plain{.timestamp_us = 9,
                            .header_position = static_cast<std::uint32_t>(parts_at),
                            .header_length_flags = static_cast<std::uint32_t>(encoded.header.size()),
                            .gid = id.gid()};
  slotfile::MetaEntry removed = plain;
  removed.timestamp_us = 10;
  removed.header_position = static_cast<std::uint32_t>(parts_at + parts.size());
  removed.header_length_flags = static_cast<std::uint32_t>(id.str().size()) | slotfile::kFlagRemoved;
  parts += id.str() + "....";
  slotfile::MetaEntry packed = plain;
  packed.timestamp_us = 11;
  packed.body_position = static_cast<std::uint32_t>(parts_at + parts.size());
  std::string body;
  const auto done = slotfile::append_compressed(body, std::string(200, 'x'), {.codec = spi::Compression::Zstd});
  packed.body_length_flags = static_cast<std::uint32_t>(body.size()) | static_cast<std::uint32_t>(done)
                                                                           << slotfile::kCompressionShift;
  parts += body + "....";
  std::string entries(3 * slotfile::kEntryBytes, '\0');
  std::size_t at = 0;
  for (const slotfile::MetaEntry& entry : {plain, removed, packed}) {
    slotfile::encode_entry(entry, 3, 0, entries.data() + at);
    at += slotfile::kEntryBytes;
  }
  save("slotfile", "sealed_run.bin", std::string("\3\3", 2) + entries + parts);
  save("slotfile", "wrong_checksums.bin", std::string("\2\3", 2) + entries + parts);
  save("slotfile", "without_end.bin", std::string("\1\3", 2) + entries + parts);
}

void journals() {
  slotfile::SlotRecord slot{.info = {.entries = 1, .documents = 1}, .live_bytes = 90, .files = {}};
  slot.files.push_back({.number = 1, .bucket = BucketId(8, 0x12), .first_cell = 0, .end_cell = 64});
  const slotfile::BucketRecord bucket{
      .uid = 1, .id = BucketId(8, 0x12), .replicas = {.epoch = 3, .nodes = {1, 2}}, .slots = {slot}};
  const slotfile::Edit edit{.removed = {7},
                            .buckets = {bucket},
                            .successors = {{.uid = 7, .lsn = 2, .buckets = {{1, BucketId(8, 0x12)}}}},
                            .file_sizes = {{1, 4096}},
                            .next_uid = 8,
                            .next_file = 2};
  const std::string encoded = slotfile::encode_edit(edit);
  save("journal", "edit.bin", '\1' + encoded);
  save("journal", "edit_in_segment.bin", '\xf8' + encoded);
  slotfile::Catalog catalog;
  catalog.apply(edit, 2);
  save("journal", "catalog.bin", ' ' + slotfile::encode_catalog(catalog, 0, 1));

  const EncodedDocument document = encode(sample_document());
  slotfile::MetaEntry entry{.timestamp_us = 9,
                            .header_length_flags = static_cast<std::uint32_t>(document.header.size()),
                            .gid = DocumentId::parse("id:ns:item:n=5:x")->gid()};
  std::string meta(slotfile::kWriteMetaBytes, '\0');
  slotfile::encode_write_meta(1, entry, meta.data());
  save("journal", "writes_in_segment.bin", '\x68' + meta + document.header + "....");
  save("journal", "segment_header.bin",
       std::string(1, '\0') + slotfile::encode_segment_header({.number = 1, .first_lsn = 1}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds <folder of the corpus>\n");
    return 2;
  }
  folder = argv[1];
  documents();
  frames();
  slotfiles();
  journals();
  return 0;
}
