#include <cstdio>

#include "fjord/storage/slotfile/slotfile_inspect.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "stored_files.h"

namespace fjord {

namespace {

using testing::located_document;
using testing::located_id;
using testing::located_put;
using testing::located_remove;
using testing::OwnedWrite;
using testing::stored_document;
using testing::StoredFiles;

constexpr int kFarAway = 2 + (1 << 16);  ///< A location in the other half of the split bucket.

const BucketId kSlots(16, 1);
const BucketId kSplit(16, 2);
const BucketId kNear(17, 2);
const BucketId kFar(17, 2 | (1 << 16));
const BucketId kDeleted(16, 3);

SlotfileOptions options(const std::string& directory) {
  SlotfileOptions options;
  options.directory = directory;
  options.limits.file_bytes_max = 4096;
  options.limits.entries_max = 8;
  options.limits.slotfiles_max = 8;
  options.journal_segment_bytes = 4096;
  return options;
}

std::string long_text(int number) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "a sentence that comes again, " + std::to_string(number) + "; ";
  return text;
}

void write(spi::PersistenceProvider& provider, BucketId bucket, const OwnedWrite& owned,
           spi::Compression header = spi::Compression::None, spi::Compression body = spi::Compression::None) {
  spi::Write write = owned.view();
  write.bucket = bucket;
  write.header_compression.codec = header;
  write.body_compression.codec = body;
  spi::WriteResult result;
  provider.apply(std::span(&write, 1), std::span(&result, 1), spi::Durability::Process);
  REQUIRE(result.status.is_ok());
  REQUIRE_FALSE(result.superseded);
}

struct Expected {
  BucketId bucket;
  BucketInfo info;
  ReplicaSet replicas;
};
/// What the engine reported when it had written the files.
const std::vector<Expected> kExpected = {
    {kSlots,
     {.entries = 24, .documents = 22, .bytes = 1514, .checksum = 10510617569510644416U, .max_timestamp_us = 203},
     {.epoch = (5ULL << 20) | 7, .nodes = {0, 2, 1}}},
    {kNear,
     {.entries = 4, .documents = 4, .bytes = 214, .checksum = 2284917163588767493U, .max_timestamp_us = 302},
     {.epoch = 6ULL << 20, .nodes = {3}}},
    {kFar,
     {.entries = 5, .documents = 5, .bytes = 359, .checksum = 17718493456464340297U, .max_timestamp_us = 303},
     {.epoch = 6ULL << 20, .nodes = {3}}},
};

void check_texts(spi::PersistenceProvider& provider) {
  for (int i = 0; i < 24; ++i) {
    if (i == 4 || i == 5) continue;
    const std::string text = i == 3 ? "newer" : i == 6 ? "newest" : i % 4 == 0 ? long_text(i) : "text";
    CHECK(stored_document(provider, kSlots, located_id(1, i)) == located_document(1, i, text));
  }
  for (const int removed : {4, 5}) {
    const auto stored = provider.get(kSlots, located_id(1, removed).gid());
    REQUIRE(stored.status().is_ok());
    CHECK(stored->removed);
  }
  for (int i = 40; i < 44; ++i) {
    const std::string text = i == 41 ? "before the split" : "";
    CHECK(stored_document(provider, kNear, located_id(2, i)) == located_document(2, i, text));
    CHECK(stored_document(provider, kFar, located_id(kFarAway, i)) == located_document(kFarAway, i, "far"));
  }
  CHECK(stored_document(provider, kFar, located_id(kFarAway, 50)) == located_document(kFarAway, 50, long_text(50)));
}

}  // namespace

// Writes test/data/slotfile/v2; not part of a test run. The files stay as they are once the format is in use: a change
// of the format needs a new version and another folder.
TEST_CASE("slotfile version 2: the stored folder is written", "[.generate]") {
  const auto env = make_posix_env();
  const std::string directory = StoredFiles::source("slotfile/v2").string();
  const Result<std::vector<std::string>> before = env->list_directory(directory);
  for (std::size_t i = 0; before && i < before->size(); ++i) {
    if ((*before)[i] != "README.md") REQUIRE(env->remove_file(directory + "/" + (*before)[i]).is_ok());
  }
  const auto provider = SlotfileProvider::open(*env, options(directory)).value();
  for (const BucketId bucket : {kSlots, kSplit, kDeleted}) REQUIRE(provider->create_bucket(bucket).is_ok());
  REQUIRE(provider->set_replica_set(kSlots, {.epoch = (5ULL << 20) | 7, .nodes = {0, 2, 1}}).is_ok());
  REQUIRE(provider->set_replica_set(kSplit, {.epoch = 6ULL << 20, .nodes = {3}}).is_ok());
  for (int i = 0; i < 24; ++i) {
    const bool compressed = i % 4 == 0;
    write(*provider, kSlots, located_put(1, i, 100U + static_cast<unsigned>(i), compressed ? long_text(i) : "text"),
          compressed ? spi::Compression::Lz4 : spi::Compression::None,
          i % 8 == 0 ? spi::Compression::Zstd : spi::Compression::Lz4);
  }
  REQUIRE(provider->checkpoint().is_ok());
  write(*provider, kSlots, located_put(1, 3, 150, "in between"));
  for (int i = 40; i < 44; ++i) {
    write(*provider, kSplit, located_put(2, i, 300, ""));
    write(*provider, kSplit, located_put(kFarAway, i, 301, "far"));
  }
  write(*provider, kDeleted, located_put(3, 60, 400, "deleted"));
  REQUIRE(provider->forget_removes(kSlots, Timestamp{150}).is_ok());
  REQUIRE(provider->checkpoint().is_ok());
  write(*provider, kSlots, located_put(1, 3, 190, "in between too"));
  REQUIRE(provider->checkpoint().is_ok());
  write(*provider, kSlots, located_put(1, 3, 200, "newer"));
  write(*provider, kSlots, located_remove(1, 4, 201));
  REQUIRE(provider->checkpoint().is_ok());
  // From here on all writes are only in the journal.
  write(*provider, kSlots, located_remove(1, 5, 202));
  write(*provider, kSlots, located_put(1, 6, 203, "newest"));
  write(*provider, kSplit, located_put(2, 41, 302, "before the split"));
  REQUIRE(provider->split_bucket(kSplit).is_ok());
  write(*provider, kFar, located_put(kFarAway, 50, 303, long_text(50)), spi::Compression::None, spi::Compression::Zstd);
  REQUIRE(provider->delete_bucket(kDeleted).is_ok());
  for (const BucketId bucket : provider->list_buckets()) {
    const BucketInfo info = provider->bucket_info(bucket).value();
    std::printf("%s: entries %lu documents %lu bytes %lu checksum %lu newest %lu\n", bucket.to_string().c_str(),
                info.entries, info.documents, info.bytes, info.checksum, info.max_timestamp_us);
  }
  check_texts(*provider);
}

TEST_CASE("slotfile version 2: a folder that was written by it opens as it was") {
  const auto env = make_posix_env();
  const StoredFiles files("slotfile/v2");
  for (const bool again : {false, true}) {
    INFO("again: " << again);
    const auto provider = SlotfileProvider::open(*env, options(files.path())).value();
    std::vector<BucketId> buckets;
    for (const Expected& expected : kExpected) {
      buckets.push_back(expected.bucket);
      CHECK(provider->bucket_info(expected.bucket).value() == expected.info);
      CHECK(provider->replica_set(expected.bucket).value() == expected.replicas);
    }
    CHECK(provider->list_buckets() == buckets);
    CHECK(provider->slots_of(kSlots).value() == 4);
    check_texts(*provider);
    CHECK(provider->take_damaged().empty());
    if (again) CHECK(provider->checkpoint().is_ok());
  }
  const auto provider = SlotfileProvider::open(*env, options(files.path())).value();
  check_texts(*provider);
}

TEST_CASE("slotfile version 2: the stored folder has what the format has") {
  const auto env = make_posix_env();
  const StoreReport report = inspect_store(*env, StoredFiles::source("slotfile/v2").string()).value();
  for (const InspectFinding& finding : report.findings) UNSCOPED_INFO(to_string(finding));
  CHECK(report.problem_count() == 0);
  REQUIRE(report.stripes.size() == 1);
  const StripeReport& stripe = report.stripes[0];
  REQUIRE(stripe.structure.buckets.size() == 3);
  CHECK(stripe.structure.successors.size() == 1);
  CHECK(stripe.structure.buckets[1].slots[0].files[0].number == stripe.structure.buckets[2].slots[0].files[0].number);
  std::size_t runs = 0;
  bool of_state[5] = {};
  bool of_compression[3] = {};
  for (const SlotfileReport& slotfile : stripe.slotfiles) {
    runs += slotfile.runs.size();
    for (const RunReport& run : slotfile.runs) {
      for (const EntryReport& entry : run.entries) {
        of_state[static_cast<int>(entry.state)] = true;
        of_compression[static_cast<int>(entry.body_compression)] = true;
      }
    }
  }
  CHECK(runs > stripe.slotfiles.size());
  CHECK(of_state[static_cast<int>(EntryState::Newest)]);
  CHECK(of_state[static_cast<int>(EntryState::Replaced)]);
  for (const bool there : of_compression) CHECK(there);
  std::size_t writes = 0;
  std::size_t edits = 0;
  for (const SegmentReport& segment : stripe.segments) {
    for (const RecordReport& record : segment.records) {
      writes += record.writes.size();
      if (record.edit) ++edits;
    }
  }
  CHECK(writes == 4);
  CHECK(edits >= 2);
}

}  // namespace fjord
