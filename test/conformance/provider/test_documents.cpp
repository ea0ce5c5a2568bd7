#include "fjord/testing/test_documents.h"

#include <algorithm>

namespace fjord::testing {

spi::Write OwnedWrite::view() const {
  return {.bucket = {}, .gid = gid, .timestamp = timestamp, .remove = remove, .id = id, .header = header, .body = body};
}

const std::shared_ptr<const DocumentTypeRepo>& test_types() {
  static const std::shared_ptr<const DocumentTypeRepo> kTypes = [] {
    const std::string schema =
        "document item {\n"
        "  field title type string { header }\n"
        "  field size type int { header }\n"
        "  field text type string { body }\n"
        "}\n";
    auto types = DocumentTypeRepo::build(std::span(&schema, 1));
    FJORD_CHECK_MSG(types.has_value(), types.status().to_string());
    return *types;
  }();
  return kTypes;
}

DocumentId test_id(int number) {
  // Eight buckets of 11 bits, all inside bucket 0x12 of 8 bits.
  const int location = 0x12 + (number % 8) * 256;
  auto id = DocumentId::parse("id:test:item:n=" + std::to_string(location) + ":" + std::to_string(number));
  FJORD_CHECK(id.has_value());
  return *id;
}

OwnedWrite test_put(int number, std::uint64_t timestamp_us, const std::string& text) {
  Document document(*test_types()->find("item"), test_id(number));
  FJORD_CHECK(document.set("title", "item " + std::to_string(number)).is_ok());
  FJORD_CHECK(document.set("size", std::int32_t{number}).is_ok());
  if (!text.empty()) FJORD_CHECK(document.set("text", text).is_ok());
  EncodedDocument encoded = encode(document);
  return {.gid = document.id().gid(),
          .timestamp = Timestamp{timestamp_us},
          .remove = false,
          .id = document.id().str(),
          .header = std::move(encoded.header),
          .body = std::move(encoded.body)};
}

OwnedWrite test_remove(int number, std::uint64_t timestamp_us) {
  const DocumentId id = test_id(number);
  return {
      .gid = id.gid(), .timestamp = Timestamp{timestamp_us}, .remove = true, .id = id.str(), .header = {}, .body = {}};
}

std::vector<spi::WriteResult> apply(spi::PersistenceProvider& provider, BucketId bucket,
                                    std::span<const OwnedWrite> writes) {
  std::vector<spi::Write> views;
  for (const OwnedWrite& write : writes) {
    views.push_back(write.view());
    views.back().bucket = bucket;
  }
  std::vector<spi::WriteResult> results(writes.size());
  provider.apply(views, results, spi::Durability::Process);
  return results;
}

spi::WriteResult apply(spi::PersistenceProvider& provider, BucketId bucket, const OwnedWrite& write) {
  return apply(provider, bucket, std::span(&write, 1)).front();
}

std::vector<OwnedEntry> entries_of(const std::string& block) {
  std::vector<OwnedEntry> entries;
  DocBlockReader reader(block);
  while (const std::optional<EntryView> entry = reader.next()) {
    entries.push_back({.gid = entry->gid,
                       .timestamp_us = entry->timestamp.us,
                       .removed = entry->removed,
                       .id = std::string(entry->id),
                       .header = std::string(entry->header),
                       .body = std::string(entry->body)});
  }
  FJORD_CHECK(reader.ok());
  return entries;
}

std::vector<OwnedEntry> iterate_all(spi::PersistenceProvider& provider, BucketId bucket,
                                    const spi::IterateOptions& options, std::size_t max_bytes) {
  auto iterator = provider.iterate(bucket, options);
  FJORD_CHECK_MSG(iterator.has_value(), iterator.status().to_string());
  std::vector<OwnedEntry> all;
  bool more = true;
  while (more) {
    DocBlockBuilder block;
    const Result<bool> result = (*iterator)->next(block, max_bytes);
    FJORD_CHECK_MSG(result.has_value(), result.status().to_string());
    more = *result;
    for (OwnedEntry& entry : entries_of(block.take())) all.push_back(std::move(entry));
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace fjord::testing
