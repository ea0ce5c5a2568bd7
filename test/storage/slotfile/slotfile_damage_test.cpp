#include <map>
#include <set>

#include "fjord/common/coding.h"
#include "fjord/common/hash.h"
#include "fjord/sim/sim_env.h"
#include "fjord/testing/engine.h"
#include "fjord/testing/test_documents.h"
#include "metadata_list.h"
#include "slotfile_format.h"

namespace fjord {

namespace {

using testing::OwnedWrite;
using testing::test_id;
using testing::test_put;
using testing::test_remove;

const BucketId kBucket(8, 0x12);
const std::string kDirectory = "/buckets/" + slotfile::bucket_directory_name(kBucket);
const std::string kSlotfile = kDirectory + "/" + slotfile::slotfile_name(1, 0);

SlotfileOptions options() {
  SlotfileOptions options;
  options.directory = "/buckets";
  options.file_bytes_initial = 5 << 10;
  options.entries_initial = 16;
  return options;
}

using Files = std::map<std::string, std::string>;

/// The files of one bucket with documents that were put, replaced and removed.
Files small_bucket() {
  sim::SimEnv env;
  auto provider = SlotfileProvider::open(env, options()).value();
  REQUIRE(provider->create_bucket(kBucket).is_ok());
  REQUIRE(provider->set_replica_set(kBucket, {.epoch = 3, .nodes = {1, 2}}).is_ok());
  const std::vector<OwnedWrite> first{test_put(1, 10, "old"), test_put(2, 11, "two"), test_put(3, 12, "three"),
                                      test_put(4, 13, "four"), test_put(5, 14, "five")};
  apply(*provider, kBucket, first);
  apply(*provider, kBucket, std::vector<OwnedWrite>{test_put(1, 20, "new"), test_remove(2, 21)});
  Files files;
  const std::vector<std::string> names = env.list_directory(kDirectory).value();
  for (const std::string& name : names) {
    files[kDirectory + "/" + name] = read_file(env, kDirectory + "/" + name).value();
  }
  REQUIRE(files.size() == 2);
  return files;
}

void restore(sim::SimEnv& env, const Files& files) {
  REQUIRE(env.create_directories(kDirectory).is_ok());
  for (const auto& [path, bytes] : files) REQUIRE(write_file_atomically(env, path, bytes, false).is_ok());
}

/// Where the n-th metadata entry is in the file.
std::size_t entry_at(std::size_t n) { return slotfile::kHeaderAreaBytes + n * slotfile::kEntryBytes; }

}  // namespace

TEST_CASE("slotfile: a flipped bit anywhere is never served, and what it hides is reported") {
  const Files files = small_bucket();
  const std::vector<OwnedWrite> expected{test_put(1, 20, "new"), test_remove(2, 21), test_put(3, 12, "three"),
                                         test_put(4, 13, "four"), test_put(5, 14, "five")};
  std::uint64_t repaired = 0;
  std::uint64_t corrupt = 0;
  for (const auto& [path, bytes] : files) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      sim::SimEnv env;
      restore(env, files);
      REQUIRE(env.flip_bit(path, at, static_cast<int>(at % 8)).is_ok());
      auto provider = SlotfileProvider::open(env, options()).value();
      bool hidden = provider->list_buckets().empty();
      for (const OwnedWrite& write : expected) {
        const auto got = provider->get(kBucket, write.gid);
        if (!got) {
          hidden = true;
          continue;
        }
        const bool right = got->timestamp == write.timestamp && got->removed == write.remove &&
                           got->header == write.header && got->body == write.body;
        if (!right) FAIL("byte " << at << " of " << path << ": a wrong document is served");
      }
      const auto set = provider->replica_set(kBucket);
      if (!set || *set != ReplicaSet{.epoch = 3, .nodes = {1, 2}}) hidden = true;
      const SlotfileStats stats = provider->stats();
      if (hidden && !stats.damaged()) FAIL("byte " << at << " of " << path << ": damage is not reported");
      repaired += stats.repaired_entries;
      corrupt += stats.corrupt_reads;
    }
  }
  CHECK(repaired == 7 * slotfile::kEntryBytes);
  CHECK(corrupt > 100);
}

TEST_CASE("slotfile: a file cut off at any length is never served wrong, and reported") {
  const Files files = small_bucket();
  const std::string whole = files.at(kSlotfile);
  for (std::size_t size = 0; size < whole.size(); size += 13) {
    INFO("cut to " << size);
    Files cut = files;
    cut[kSlotfile].resize(size);
    sim::SimEnv env;
    restore(env, cut);
    auto provider = SlotfileProvider::open(env, options()).value();
    CHECK(provider->stats().damaged());
    for (int number : {1, 3}) {
      const auto got = provider->get(kBucket, test_id(number).gid());
      if (got && number == 1 && got->timestamp == Timestamp{20}) CHECK(got->body == test_put(1, 20, "new").body);
      if (got && number == 3) CHECK(got->body == test_put(3, 12, "three").body);
    }
    CHECK(apply(*provider, kBucket, test_put(9, 50)).status.is_ok());
    CHECK(provider->get(kBucket, test_id(9).gid()).has_value());
  }
}

TEST_CASE("slotfile: a destroyed metadata entry does not bring the replaced version back") {
  Files files = small_bucket();
  std::string& bytes = files[kSlotfile];
  for (const std::size_t n : {5U, 6U}) {  // the newer version of 1, the remove of 2
    bytes[entry_at(n)] = static_cast<char>(~bytes[entry_at(n)]);
    bytes[entry_at(n) + 30] = static_cast<char>(~bytes[entry_at(n) + 30]);
  }
  sim::SimEnv env;
  restore(env, files);
  auto provider = SlotfileProvider::open(env, options()).value();
  CHECK(provider->stats().bad_entries == 2);
  CHECK(provider->stats().damaged());
  CHECK(provider->get(kBucket, test_id(1).gid()).status().code() == StatusCode::NotFound);
  CHECK(provider->get(kBucket, test_id(2).gid()).status().code() == StatusCode::NotFound);
  CHECK(provider->bucket_info(kBucket)->entries == 3);
}

TEST_CASE("slotfile: the torn end of an interrupted write is dropped, is no damage, and is written over") {
  Files files = small_bucket();
  std::string& bytes = files[kSlotfile];
  bytes.replace(entry_at(6) + 20, 20, 20, '\0');
  sim::SimEnv env;
  restore(env, files);
  auto provider = SlotfileProvider::open(env, options()).value();
  CHECK(provider->stats().torn_entries == 1);
  CHECK_FALSE(provider->stats().damaged());
  CHECK_FALSE(provider->get(kBucket, test_id(2).gid())->removed);
  REQUIRE(apply(*provider, kBucket, test_put(6, 30)).status.is_ok());
  provider = SlotfileProvider::open(env, options()).value();
  CHECK(provider->stats().torn_entries == 0);
  CHECK(provider->bucket_info(kBucket)->entries == 6);
}

TEST_CASE("slotfile: an iteration fails at a corrupt document, after what comes before it, and names it") {
  Files files = small_bucket();
  const std::string body = test_put(4, 13, "four").body;
  const std::size_t at = files[kSlotfile].find(body);
  REQUIRE(at != std::string::npos);
  files[kSlotfile][at] = static_cast<char>(files[kSlotfile][at] ^ 0x55);
  sim::SimEnv env;
  restore(env, files);
  auto provider = SlotfileProvider::open(env, options()).value();
  const GlobalId gid = test_id(4).gid();
  CHECK(provider->get(kBucket, gid).status().code() == StatusCode::Corruption);
  auto iterator = provider->iterate(kBucket, {}).value();
  DocBlockBuilder block;
  CHECK(iterator->next(block, 1 << 20).value());
  CHECK(block.count() == 1);  // document 3; 1 and 2 have moved behind 5
  for (int again = 0; again < 2; ++again) {
    const Status status = iterator->next(block, 1 << 20).status();
    CHECK(status.code() == StatusCode::Corruption);
    CHECK(status.message().find(kSlotfile) != std::string::npos);
    CHECK(status.message().find(gid.to_string()) != std::string::npos);
  }
  // Reads of others go on, as does an iteration that does not need the body.
  CHECK(testing::iterate_all(*provider, kBucket,
                             {.types = nullptr, .selection = nullptr, .fields = spi::FieldSet::IdOnly})
            .size() == 4);
  const std::vector<GlobalId> gids{test_id(3).gid(), gid};
  CHECK(provider->read_entries(kBucket, gids, block, 1 << 20).value() == 1);
  CHECK(provider->read_entries(kBucket, std::span(gids).subspan(1), block, 1).status().code() ==
        StatusCode::Corruption);
  CHECK(provider->stats().corrupt_reads >= 4);
  // A newer version heals it.
  REQUIRE(apply(*provider, kBucket, test_put(4, 90, "whole")).status.is_ok());
  CHECK(testing::iterate_all(*provider, kBucket, {}).size() == 4);
}

TEST_CASE("slotfile: corruption stays corruption when the file is rewritten and split") {
  Files files = small_bucket();
  const std::size_t at = files[kSlotfile].find(test_put(4, 13, "four").body);
  files[kSlotfile][at] = static_cast<char>(files[kSlotfile][at] ^ 0x55);
  sim::SimEnv env;
  restore(env, files);
  SlotfileOptions tiny = testing::tiny_slotfile_options("/buckets");
  auto provider = SlotfileProvider::open(env, tiny).value();
  for (int i = 100; i < 160; ++i) apply(*provider, kBucket, test_put(i, 100, std::string(300, 'x')));
  REQUIRE(provider->stats().splits > 0);
  CHECK(provider->get(kBucket, test_id(4).gid()).status().code() == StatusCode::Corruption);
  CHECK(provider->get(kBucket, test_id(3).gid()).has_value());
}

TEST_CASE("slotfile: a lost or damaged manifest is made again from the slotfiles, without the replica set") {
  for (const bool lost : {true, false}) {
    Files files = small_bucket();
    if (lost) {
      files.erase(kDirectory + "/manifest");
    } else {
      files[kDirectory + "/manifest"] = "nonsense";
    }
    sim::SimEnv env;
    restore(env, files);
    auto provider = SlotfileProvider::open(env, options()).value();
    CHECK(provider->stats().rebuilt_manifests == 1);
    CHECK(provider->stats().damaged());
    CHECK(provider->bucket_info(kBucket)->documents == 4);
    CHECK(provider->replica_set(kBucket).value() == ReplicaSet{});
    provider = SlotfileProvider::open(env, options()).value();
    CHECK(provider->stats().rebuilt_manifests == 0);
  }
}

TEST_CASE("slotfile: an unreadable slotfile is kept aside, and the bucket goes on without it") {
  Files files = small_bucket();
  for (const std::uint64_t offset : slotfile::kHeaderCopyOffsets) files[kSlotfile][offset + 9] ^= 0x11;
  sim::SimEnv env;
  restore(env, files);
  auto provider = SlotfileProvider::open(env, options()).value();
  CHECK(provider->stats().bad_slotfiles == 1);
  CHECK(provider->bucket_info(kBucket)->entries == 0);
  CHECK(provider->replica_set(kBucket)->epoch == 3);
  CHECK(env.exists(kSlotfile + ".bad").value());
  CHECK(apply(*provider, kBucket, test_put(1, 99)).status.is_ok());
}

TEST_CASE("slotfile: a file of a newer format is left alone") {
  Files files = small_bucket();
  std::string& manifest = files[kDirectory + "/manifest"];
  manifest[4] = 2;
  manifest.resize(manifest.size() - 4);
  put_fixed<std::uint32_t>(manifest, checksum32(manifest, slotfile::kManifestMagic));
  sim::SimEnv env;
  restore(env, files);
  CHECK(SlotfileProvider::open(env, options()).status().code() == StatusCode::NotImplemented);
  CHECK(read_file(env, kSlotfile).value() == files[kSlotfile]);
}

TEST_CASE("slotfile: a metadata entry that was written to another place does not count there") {
  Files files = small_bucket();
  std::string& bytes = files[kSlotfile];
  bytes.replace(entry_at(3), slotfile::kEntryBytes, bytes.substr(entry_at(2), slotfile::kEntryBytes));
  sim::SimEnv env;
  restore(env, files);
  auto provider = SlotfileProvider::open(env, options()).value();
  CHECK(provider->stats().bad_entries == 1);
  CHECK(provider->get(kBucket, test_id(4).gid()).status().code() == StatusCode::NotFound);
}

TEST_CASE("slotfile: a document that was written to the place of another is not served") {
  Files files = small_bucket();
  std::string& bytes = files[kSlotfile];
  const std::string three = test_put(3, 12, "three").header;
  const std::string five = test_put(5, 14, "five").header;
  REQUIRE(three.size() == five.size());
  bytes.replace(bytes.find(three), five.size() + 4, bytes.substr(bytes.find(five), five.size() + 4));
  sim::SimEnv env;
  restore(env, files);
  auto provider = SlotfileProvider::open(env, options()).value();
  CHECK(provider->get(kBucket, test_id(3).gid()).status().code() == StatusCode::Corruption);
  CHECK(provider->get(kBucket, test_id(5).gid()).has_value());
}

}  // namespace fjord
