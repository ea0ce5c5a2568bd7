#include <algorithm>

#include "fjord/common/log.h"
#include "fjord/sim/sim_env.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "stored_files.h"

namespace fjord {

namespace {

using testing::located_document;
using testing::located_id;
using testing::located_put;
using testing::located_remove;
using testing::stored_document;
using testing::StoredFiles;

const BucketId kFirst(16, 1);
const BucketId kSecond(16, 2);
const BucketId kAstray(16, 3);  ///< A bucket with a document that does not belong to it.
const std::vector<std::string> kFolders = {"4000000000000001", "4000000000000002", "4000000000000003"};

SlotfileOptions options(const std::string& directory, unsigned stripe = 0, unsigned stripes = 1) {
  SlotfileOptions options;
  options.directory = directory;
  options.stripe = stripe;
  options.stripes = stripes;
  options.journal_segment_bytes = 4096;
  return options;
}

void check_first(spi::PersistenceProvider& provider) {
  // Equals the report of version 1 when it had written the files.
  CHECK(provider.bucket_info(kFirst).value() ==
        BucketInfo{
            .entries = 12, .documents = 11, .bytes = 643, .checksum = 8245587479154887453U, .max_timestamp_us = 201});
  CHECK(provider.replica_set(kFirst).value() == ReplicaSet{.epoch = (5ULL << 20) | 7, .nodes = {0, 2, 1}});
  for (int i = 0; i < 12; ++i) {
    const GlobalId gid = located_id(1, i).gid();
    const auto stored = provider.get(kFirst, gid);
    REQUIRE(stored.status().is_ok());
    CHECK(stored->removed == (i == 4));
    CHECK(stored->timestamp.us == (i == 3 ? 200U : i == 4 ? 201U : 100U + static_cast<unsigned>(i)));
    if (i == 4) continue;
    const std::string text = i == 3 ? "newer" : "text " + std::to_string(i);
    CHECK(stored_document(provider, kFirst, located_id(1, i)) == located_document(1, i, text));
  }
  spi::IterateOptions all{.types = nullptr, .selection = nullptr};
  all.include_removed = true;
  const auto entries = testing::iterate_all(provider, kFirst, all);
  REQUIRE(entries.size() == 12);
  for (const auto& entry : entries) {
    if (entry.removed) CHECK(entry.id == located_id(1, 4).str());
  }
}

void check_second(spi::PersistenceProvider& provider) {
  CHECK(provider.bucket_info(kSecond).value() ==
        BucketInfo{
            .entries = 3, .documents = 3, .bytes = 144, .checksum = 18140739837579080756U, .max_timestamp_us = 322});
  CHECK(provider.replica_set(kSecond).value() == ReplicaSet{});
  for (int i = 20; i < 23; ++i) {
    CHECK(stored_document(provider, kSecond, located_id(2, i)) == located_document(2, i, ""));
  }
}

void check_astray(spi::PersistenceProvider& provider) {
  CHECK(provider.bucket_info(kAstray)->entries == 1);
  CHECK(stored_document(provider, kAstray, located_id(3, 30)) == located_document(3, 30, "at home"));
  CHECK(provider.get(kAstray, located_id(4, 31).gid()).status().code() == StatusCode::Corruption);
}

/// Loads the files of the stored folder onto a simulated disk, durably.
void load(sim::SimEnv& env, const std::string& directory) {
  const auto posix = make_posix_env();
  const std::string source = StoredFiles::source("slotfile/v1").string();
  REQUIRE(env.create_directories(directory).is_ok());
  for (const std::string& folder : kFolders) {
    REQUIRE(env.create_directories(directory + "/" + folder).is_ok());
    const std::vector<std::string> names = posix->list_directory(source + "/" + folder).value();
    for (const std::string& name : names) {
      const std::string path = "/" + folder + "/" + name;
      const std::string bytes = read_file(*posix, source + path).value();
      REQUIRE(write_file_atomically(env, directory + path, bytes, true).is_ok());
    }
  }
  for (const std::string& folder : kFolders) REQUIRE(env.sync_directory(directory + "/" + folder).is_ok());
  REQUIRE(env.sync_directory(directory).is_ok());
  REQUIRE(env.sync_directory("/").is_ok());
}

class Quiet {
 public:
  Quiet() { log::set_level(log::Level::Off); }
  ~Quiet() { log::set_level(log::Level::Info); }
};

}  // namespace

TEST_CASE("slotfile version 1: a folder that was written by it is taken over as it was") {
  const Quiet quiet;
  const auto env = make_posix_env();
  const StoredFiles files("slotfile/v1");
  {
    const auto provider = SlotfileProvider::open(*env, options(files.path())).value();
    CHECK(provider->list_buckets() == std::vector<BucketId>{kFirst, kSecond, kAstray});
    check_first(*provider);
    check_second(*provider);
    check_astray(*provider);
    CHECK(provider->take_damaged() == std::vector<BucketId>{kAstray});
    CHECK(provider->stats().bad_entries == 1);
    CHECK(provider->stats().held_bytes == 0);
  }
  // All old folders are gone, except the one with content that fits no bucket.
  CHECK_FALSE(files.has(kFolders[0]));
  CHECK_FALSE(files.has(kFolders[1]));
  CHECK_FALSE(files.has(kFolders[0] + ".imported"));
  CHECK(files.has(kFolders[2] + ".damaged"));
  const auto provider = SlotfileProvider::open(*env, options(files.path())).value();
  check_first(*provider);
  check_second(*provider);
  check_astray(*provider);
  CHECK(provider->take_damaged() == std::vector<BucketId>{kAstray});
  CHECK(provider->stats().bad_entries == 0);
}

TEST_CASE("slotfile version 1: each stripe takes over its own buckets and leaves the others alone") {
  const Quiet quiet;
  const auto env = make_posix_env();
  const StoredFiles files("slotfile/v1");
  const auto even = SlotfileProvider::open(*env, options(files.path(), 0, 2)).value();
  CHECK(even->list_buckets() == std::vector<BucketId>{kSecond});
  check_second(*even);
  CHECK(files.has(kFolders[0]));
  const auto odd = SlotfileProvider::open(*env, options(files.path(), 1, 2)).value();
  CHECK(odd->list_buckets() == std::vector<BucketId>{kFirst, kAstray});
  check_first(*odd);
  CHECK_FALSE(files.has(kFolders[0]));
}

TEST_CASE("slotfile version 1: after a take-over that was interrupted anywhere the next start completes it") {
  const Quiet quiet;
  // Each write, rename, removal and sync of a whole take-over fails once, in turn, together with a power loss.
  const auto changes = sim::FileOperation::Write | sim::FileOperation::Create | sim::FileOperation::Rename |
                       sim::FileOperation::Remove | sim::FileOperation::Sync | sim::FileOperation::SyncDirectory;
  std::uint64_t interrupted = 0;
  for (std::uint64_t skip = 0;; ++skip) {
    sim::SimEnv env({.seed = skip + 1, .power_loss = true});
    load(env, "/store");
    env.inject({.path_prefix = "/store", .operations = changes, .skip = skip});
    const bool opened = SlotfileProvider::open(env, options("/store")).has_value();
    if (opened && env.faults_pending() != 0) break;  // The take-over has no more operations than `skip`.
    if (!opened) ++interrupted;
    env.lose_power();
    const auto provider = SlotfileProvider::open(env, options("/store"));
    INFO(skip);
    REQUIRE(provider.status().is_ok());
    check_first(**provider);
    check_second(**provider);
    check_astray(**provider);
    for (const std::string& folder : kFolders) CHECK_FALSE(env.exists("/store/" + folder).value());
  }
  CHECK(interrupted > 10);
}

TEST_CASE("slotfile version 1: an old folder that was taken over does not come back with a loss of power") {
  const Quiet quiet;
  sim::SimEnv env({.power_loss = true});
  load(env, "/store");
  REQUIRE(SlotfileProvider::open(env, options("/store")).has_value());
  env.lose_power_and_all_unsynced();
  for (const std::string& folder : kFolders) CHECK_FALSE(env.exists("/store/" + folder).value());
  const auto provider = SlotfileProvider::open(env, options("/store")).value();
  check_first(*provider);
  check_second(*provider);
  check_astray(*provider);
  CHECK_FALSE(env.exists("/store/" + kFolders[0] + ".imported").value());
}

TEST_CASE("slotfile version 1: a flipped bit is never served, and the bucket is known to be damaged") {
  const Quiet quiet;
  const std::string path = "/store/" + kFolders[1] + "/00000001-00.slot";
  std::uint64_t size = 0;
  for (std::uint64_t at = 0; at == 0 || at < size; at += at < 4096 + 400 ? 7 : 101) {
    sim::SimEnv env;
    load(env, "/store");
    size = read_file(env, path)->size();
    REQUIRE(env.flip_bit(path, at, static_cast<int>(at % 8)).is_ok());
    const auto provider = SlotfileProvider::open(env, options("/store")).value();
    INFO("byte " << at);
    std::uint64_t there = 0;
    for (int i = 20; i < 23; ++i) {
      const auto stored = provider->get(kSecond, located_id(2, i).gid());
      if (!stored) {
        CHECK(stored.status().code() == StatusCode::Corruption);
        continue;
      }
      CHECK(stored_document(*provider, kSecond, located_id(2, i)) == located_document(2, i, ""));
      ++there;
    }
    const bool damaged = env.exists("/store/" + kFolders[1] + ".damaged").value();
    CHECK(damaged == (there < 3));
  }
}

TEST_CASE("slotfile version 1: a bucket whose manifest is gone or damaged is found by its slotfiles") {
  const Quiet quiet;
  sim::SimEnv env;
  load(env, "/store");
  REQUIRE(env.remove_file("/store/" + kFolders[0] + "/manifest").is_ok());
  REQUIRE(env.flip_bit("/store/" + kFolders[1] + "/manifest", 9, 3).is_ok());
  const auto provider = SlotfileProvider::open(env, options("/store")).value();
  CHECK(provider->bucket_info(kFirst)->checksum == 8245587479154887453U);
  CHECK(provider->replica_set(kFirst)->epoch == 0);
  CHECK(provider->bucket_info(kSecond)->entries == 3);
  CHECK(provider->take_damaged() == std::vector<BucketId>{kSecond, kAstray});
}

TEST_CASE("slotfile version 1: a bucket without a manifest is damaged if a document cannot be read") {
  const Quiet quiet;
  sim::SimEnv env;
  load(env, "/store");
  const std::string folder = "/store/" + kFolders[1];
  REQUIRE(env.remove_file(folder + "/manifest").is_ok());
  const std::string slotfile = folder + "/00000001-00.slot";
  const std::size_t at = read_file(env, slotfile)->find("item 21");
  REQUIRE(at != std::string::npos);
  REQUIRE(env.flip_bit(slotfile, at, 0).is_ok());
  const auto provider = SlotfileProvider::open(env, options("/store")).value();
  CHECK(provider->take_damaged() == std::vector<BucketId>{kSecond, kAstray});
  CHECK(provider->get(kSecond, located_id(2, 21).gid()).status().code() == StatusCode::Corruption);
  CHECK(stored_document(*provider, kSecond, located_id(2, 22)) == located_document(2, 22, ""));
}

TEST_CASE("slotfile version 1: an empty bucket is taken over") {
  const Quiet quiet;
  sim::SimEnv env;
  load(env, "/store");
  // In a slotfile, zeros after the headers are unused entries.
  const std::string slotfile = "/store/" + kFolders[1] + "/00000001-00.slot";
  constexpr std::size_t kHeaderBytes = 4096;
  std::string bytes = read_file(env, slotfile).value();
  std::fill(bytes.begin() + kHeaderBytes, bytes.end(), '\0');
  REQUIRE(write_file_atomically(env, slotfile, bytes, true).is_ok());
  const auto provider = SlotfileProvider::open(env, options("/store")).value();
  CHECK(provider->list_buckets() == std::vector<BucketId>{kFirst, kSecond, kAstray});
  CHECK(provider->bucket_info(kSecond)->entries == 0);
  CHECK(provider->take_damaged() == std::vector<BucketId>{kAstray});
}

}  // namespace fjord
