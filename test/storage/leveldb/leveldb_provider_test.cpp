#include "fjord/storage/leveldb/leveldb_provider.h"

#include <algorithm>

#include "fjord/common/log.h"
#include "fjord/common/random.h"
#include "fjord/testing/test_documents.h"
#include "storage/leveldb/locked_env.h"

namespace fjord {

namespace {

using testing::apply;
using testing::OwnedWrite;
using testing::test_id;
using testing::test_put;
using testing::test_remove;

const BucketId kBucket(8, 0x12);

/// One stripe on a simulated disk.
struct Machine {
  explicit Machine(sim::SimEnvOptions disk_options = {}) : disk(disk_options), env(disk) {
    log::set_level(log::Level::Off);
    options.directory = "/node/buckets";
    options.write_buffer_bytes = 64 << 10;
    REQUIRE(env.create_directories("/node").is_ok());
    REQUIRE(env.sync_directory("/").is_ok());
    REQUIRE(env.sync_directory("/node").is_ok());
    reopen();
  }
  Status try_open() {
    provider.reset();
    auto opened = open_leveldb_provider(env, options);
    if (!opened) return opened.error();
    provider = std::move(*opened);
    return Status::ok();
  }
  void reopen() {
    const Status status = try_open();
    INFO(status);
    REQUIRE(status);
  }
  Status put_synced(const OwnedWrite& write) {
    const spi::Write view[] = {[&] {
      spi::Write made = write.view();
      made.bucket = kBucket;
      return made;
    }()};
    spi::WriteResult result[1];
    provider->apply(view, result, spi::Durability::Sync);
    return result[0].status;
  }
  void inject(sim::FileFault fault) {
    env.locked([&](sim::SimEnv& locked) { locked.inject(std::move(fault)); });
  }
  void set_capacity(std::uint64_t bytes) {
    env.locked([&](sim::SimEnv& locked) { locked.set_capacity(bytes); });
  }
  /// Closes the engine and flips some bits in its entries; returns their number.
  int damage_tables() {
    provider.reset();
    const std::string folder = "/node/buckets/leveldb-0/";
    const std::vector<std::string> names = env.list_directory(folder).value();
    int flipped = 0;
    for (const std::string& name : names) {
      if (!name.ends_with(".ldb")) continue;
      const std::uint64_t size = env.open_random_access(folder + name).value()->size().value();
      for (std::uint64_t at = 20'000; at + 20'000 < size; at += 20'000, ++flipped) {
        REQUIRE(disk.flip_bit(folder + name, at, 3).is_ok());
      }
    }
    return flipped;
  }
  /// Closes the engine and flips a bit in the block of a table that has the metadata of this document.
  void damage_metadata_of(const GlobalId& gid) {
    provider.reset();
    // The tables store only the part of a key that differs from the key before it.
    constexpr std::size_t kPartOfKey = 6;
    const std::string_view part = gid.view().substr(gid.view().size() - kPartOfKey);
    const std::string folder = "/node/buckets/leveldb-0/";
    const std::vector<std::string> names = env.list_directory(folder).value();
    for (const std::string& name : names) {
      if (!name.ends_with(".ldb")) continue;
      const std::string bytes = read_file(env, folder + name).value();
      // The first place is in the metadata, which comes before headers and bodies.
      const std::size_t at = bytes.find(part);
      if (at == std::string::npos) continue;
      REQUIRE(disk.flip_bit(folder + name, at, 3).is_ok());
      return;
    }
    FAIL("no table has the document");
  }
  /// Runs maintenance for some seconds of the engine's time.
  void pass_time() {
    for (int i = 0; i < 200; ++i) {
      now = now + std::chrono::milliseconds(20);
      while (provider->maintain(now).more) {
      }
    }
  }

  sim::SimEnv disk;
  test::LockedEnv env;
  LeveldbOptions options;
  MonotonicTime now;
  std::unique_ptr<spi::PersistenceProvider> provider;
};

/// Returns a text that hardly compresses.
std::string big_text(int number) {
  Random random(static_cast<std::uint64_t>(number) + 1);
  std::string text(1500, ' ');
  for (char& c : text) c = static_cast<char>('0' + random.below(64));
  return text;
}

}  // namespace

TEST_CASE("leveldb: a folder tells its stripes, and is not opened with others") {
  Machine machine;
  CHECK(leveldb_stripes_of(machine.env, "/node/buckets").value() == std::optional(1U));
  CHECK(leveldb_stripes_of(machine.env, "/node/elsewhere").value() == std::nullopt);
  machine.options.stripes = 2;
  CHECK(machine.try_open().code() == StatusCode::InvalidArgument);
  machine.options.stripes = 3;
  CHECK(machine.try_open().code() == StatusCode::InvalidArgument);
}

TEST_CASE("leveldb: a folder of a newer format, or with an unreadable marker, is refused") {
  Machine machine;
  REQUIRE(write_file_atomically(machine.env, "/node/buckets/leveldb-stripes", "fjord-leveldb 2 1\n", true));
  CHECK(machine.try_open().code() == StatusCode::NotImplemented);
  REQUIRE(write_file_atomically(machine.env, "/node/buckets/leveldb-stripes", "fjord-level", true));
  CHECK(machine.try_open().code() == StatusCode::Corruption);
}

TEST_CASE("leveldb: buckets of other stripes are not made") {
  sim::SimEnv disk;
  test::LockedEnv env(disk);
  for (unsigned stripe = 0; stripe < 2; ++stripe) {
    LeveldbOptions options;
    options.directory = "/buckets";
    options.stripe = stripe;
    options.stripes = 2;
    const auto provider = open_leveldb_provider(env, options).value();
    CHECK(provider->create_bucket(BucketId(8, 0x10 + stripe)).is_ok());
    CHECK(provider->create_bucket(BucketId(8, 0x11 - stripe)).code() == StatusCode::InvalidArgument);
  }
}

TEST_CASE("leveldb: what was synced survives a loss of power, and what it builds on") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 13));
  Machine machine({.seed = seed, .power_loss = true});
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  REQUIRE(machine.provider->set_replica_set(kBucket, {.epoch = 5, .nodes = {1}}).is_ok());
  // The log is full and its table is held back, so the sync concerns another log than the one with the bucket's
  // creation.
  machine.env.hold_creations(".ldb");
  constexpr int kDocuments = 60;
  for (int i = 0; i < kDocuments; ++i) {
    REQUIRE(apply(*machine.provider, kBucket, test_put(i, 10, big_text(i))).status.is_ok());
  }
  REQUIRE(machine.put_synced(test_put(1000, 20, "synced")).is_ok());
  for (int i = kDocuments; i < kDocuments + 5; ++i) apply(*machine.provider, kBucket, test_put(i, 10, big_text(i)));
  if (seed % 3 == 0) {
    machine.env.locked([](sim::SimEnv& disk) { disk.lose_power_and_all_unsynced(); });
  } else {
    machine.env.locked([](sim::SimEnv& disk) { disk.lose_power(); });
  }
  machine.env.release();
  machine.reopen();
  REQUIRE(machine.provider->list_buckets() == std::vector<BucketId>{kBucket});
  CHECK(machine.provider->replica_set(kBucket)->epoch == 5);
  CHECK(machine.provider->get(kBucket, test_id(1000).gid())->body == test_put(1000, 20, "synced").body);
  // Logs are replayed in order: with the synced write come all earlier ones.
  for (int i = 0; i < kDocuments; ++i) {
    INFO("document " << i);
    const auto got = machine.provider->get(kBucket, test_id(i).gid());
    REQUIRE(got);
    CHECK(got->body == test_put(i, 10, big_text(i)).body);
  }
  CHECK(machine.provider->health().is_ok());
}

TEST_CASE("leveldb: after a failed sync nothing is acknowledged any more, and the engine says so") {
  Machine machine;
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  REQUIRE(machine.put_synced(test_put(1, 10)).is_ok());
  machine.inject({.path_prefix = "/node/buckets", .operations = sim::FileOperation::Sync});
  CHECK(machine.put_synced(test_put(2, 11)).code() == StatusCode::Timeout);
  CHECK(machine.provider->health().code() == StatusCode::IoError);
  machine.pass_time();
  CHECK_FALSE(machine.put_synced(test_put(3, 12)).is_ok());
  CHECK_FALSE(apply(*machine.provider, kBucket, test_put(3, 12)).status.is_ok());
  CHECK_FALSE(machine.provider->create_bucket(BucketId(8, 0x13)).is_ok());
  CHECK(machine.provider->get(kBucket, test_id(1).gid()).has_value());
  machine.reopen();
  CHECK(machine.provider->health().is_ok());
  CHECK(machine.provider->get(kBucket, test_id(1).gid()).has_value());
  CHECK(machine.put_synced(test_put(3, 12)).is_ok());
}

TEST_CASE("leveldb: a full disk refuses writes and nothing else, and writes go on when there is space (I14)") {
  Machine machine;
  auto& provider = *machine.provider;
  REQUIRE(provider.create_bucket(kBucket).is_ok());
  machine.set_capacity(2 << 20);
  int written = 0;
  Status status;
  for (; written < 5000 && status; ++written) {
    status = apply(provider, kBucket, test_put(written, 10, big_text(written))).status;
  }
  CHECK(status.code() == StatusCode::NoSpace);
  --written;
  CHECK(provider.health().is_ok());
  CHECK(provider.bucket_info(kBucket)->documents == static_cast<std::uint64_t>(written));
  const auto check_all = [&] {
    for (int i = 0; i < written; ++i) REQUIRE(provider.get(kBucket, test_id(i).gid())->body.size() > 1500);
    CHECK(provider.get(kBucket, test_id(written).gid()).status().code() == StatusCode::NotFound);
    CHECK(testing::iterate_all(provider, kBucket, {}).size() == static_cast<std::size_t>(written));
  };
  check_all();
  machine.pass_time();
  check_all();
  machine.set_capacity(8 << 20);
  machine.pass_time();
  check_all();
  CHECK(apply(provider, kBucket, test_remove(0, 20)).status.is_ok());
  CHECK(apply(provider, kBucket, test_put(written, 20, "again")).status.is_ok());
  const BucketInfo info = provider.bucket_info(kBucket).value();
  machine.reopen();
  CHECK(machine.provider->bucket_info(kBucket).value() == info);
}

TEST_CASE("leveldb: a failed write leaves nothing behind, and is not found after a restart") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 9));
  Machine machine({.seed = seed});
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  for (int i = 0; i < 5; ++i) REQUIRE(apply(*machine.provider, kBucket, test_put(i, 10, big_text(i))).status.is_ok());
  machine.inject({.path_prefix = "/node/buckets", .operations = sim::FileOperation::Write});
  std::vector<OwnedWrite> batch{test_put(5, 11, "five"), test_put(6, 11, "six"), test_put(5, 9, "superseded by five")};
  for (const spi::WriteResult& result : apply(*machine.provider, kBucket, batch)) {
    CHECK(result.status.code() == StatusCode::IoError);
  }
  CHECK(machine.provider->bucket_info(kBucket)->documents == 5);
  if (seed % 2 == 0) {
    machine.pass_time();  // In this time the engine opens the database again.
    CHECK(apply(*machine.provider, kBucket, test_put(7, 12)).status.is_ok());
  }
  machine.reopen();
  CHECK(machine.provider->bucket_info(kBucket)->documents == (seed % 2 == 0 ? 6 : 5));
  CHECK(machine.provider->get(kBucket, test_id(5).gid()).status().code() == StatusCode::NotFound);
  CHECK(machine.provider->get(kBucket, test_id(4).gid()).has_value());
}

TEST_CASE("leveldb: a split or join that is broken off leaves the buckets as they were (I10)") {
  const std::uint64_t fails_at = GENERATE(range<std::uint64_t>(0, 6));
  const bool join = GENERATE(false, true);
  Machine machine;
  const auto halves = halves_of(kBucket);
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  for (int i = 0; i < 60; ++i) apply(*machine.provider, kBucket, test_put(i, 10, std::string(40'000, 'x')));
  if (join) REQUIRE(machine.provider->split_bucket(kBucket).is_ok());
  machine.pass_time();
  std::vector<BucketInfo> before;
  for (const BucketId bucket : machine.provider->list_buckets()) {
    before.push_back(machine.provider->bucket_info(bucket).value());
  }
  REQUIRE(before.size() == (join ? 2 : 1));
  machine.inject({.path_prefix = "/node/buckets", .operations = sim::FileOperation::Write, .skip = fails_at * 8});
  const Status status = join ? machine.provider->join_buckets(kBucket) : machine.provider->split_bucket(kBucket);
  CHECK(status.is_ok() == (machine.env.locked([](sim::SimEnv& disk) { return disk.faults_hit(); }) == 0));
  machine.env.locked([](sim::SimEnv& disk) { disk.clear_faults(); });
  machine.reopen();
  machine.pass_time();
  if (status) return;
  std::vector<BucketInfo> after;
  for (const BucketId bucket : machine.provider->list_buckets()) {
    after.push_back(machine.provider->bucket_info(bucket).value());
  }
  CHECK(after == before);
  REQUIRE((join ? machine.provider->join_buckets(kBucket) : machine.provider->split_bucket(kBucket)).is_ok());
  CHECK(machine.provider->list_buckets().size() == (join ? 1 : 2));
  std::uint64_t documents = 0;
  for (const BucketId bucket : machine.provider->list_buckets()) {
    documents += machine.provider->bucket_info(bucket)->documents;
  }
  CHECK(documents == 60);
  CHECK(machine.provider->get(join ? kBucket : halves[test_id(0).bucket(9) == halves[0] ? 0 : 1], test_id(0).gid())
            .has_value());
}

TEST_CASE("leveldb: flipped bits are never served: what cannot be read is missing, and the bucket is damaged") {
  Machine machine;
  machine.options.write_buffer_bytes = 4 << 20;  // Large: one table, so that no compaction reads the damage.
  machine.reopen();
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  for (int i = 0; i < 200; ++i) {
    REQUIRE(apply(*machine.provider, kBucket, test_put(i, 10, big_text(i))).status.is_ok());
  }
  machine.reopen();  // Moves everything from the log into tables.
  REQUIRE(machine.damage_tables() > 0);
  machine.reopen();
  const std::uint64_t left = machine.provider->bucket_info(kBucket)->documents;
  int good = 0;
  for (int i = 0; i < 200; ++i) {
    const auto got = machine.provider->get(kBucket, test_id(i).gid());
    if (got) {
      CHECK(got->body == test_put(i, 10, big_text(i)).body);
      ++good;
    } else {
      CHECK(got.error().code() == StatusCode::Corruption);
    }
  }
  CHECK(good > 50);
  CHECK(machine.provider->health().is_ok());
  CHECK(good < 200);
  CHECK(left >= static_cast<std::uint64_t>(good));
  CHECK(machine.provider->take_damaged() == std::vector<BucketId>{kBucket});
  CHECK(machine.provider->take_damaged().empty());
  CHECK(machine.provider->bucket_info(kBucket)->documents == static_cast<std::uint64_t>(good));
  CHECK(machine.provider->list_entries(kBucket)->size() == static_cast<std::size_t>(good));
  CHECK(machine.provider->get(kBucket, test_id(9999).gid()).status().code() == StatusCode::Corruption);
  CHECK(*machine.provider->is_damaged(kBucket));
  // Puts the documents again, as a merge does.
  for (int i = 0; i < 200; ++i) apply(*machine.provider, kBucket, test_put(i, 10, big_text(i)));
  CHECK(machine.provider->bucket_info(kBucket)->documents == 200);
  REQUIRE(machine.provider->mark_repaired(kBucket).is_ok());
  CHECK_FALSE(*machine.provider->is_damaged(kBucket));
  for (int i = 0; i < 200; ++i) CHECK(machine.provider->get(kBucket, test_id(i).gid()).has_value());
  CHECK(machine.provider->get(kBucket, test_id(9999).gid()).status().code() == StatusCode::NotFound);
}

TEST_CASE("leveldb: a renewal reads the whole bucket, and the end of its damage is durable") {
  constexpr int kDocuments = 1200;  // More than one step of a renewal reads.
  Machine machine({.power_loss = true});
  machine.options.write_buffer_bytes = 4 << 20;  // Large: one table, so that no compaction reads the damage.
  machine.reopen();
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  for (int i = 0; i < kDocuments; ++i) {
    REQUIRE(apply(*machine.provider, kBucket, test_put(i, 10, big_text(i))).status.is_ok());
  }
  machine.reopen();  // Moves everything from the log into tables.
  REQUIRE(machine.damage_tables() > 0);
  machine.reopen();
  int read = 0;
  while (machine.provider->get(kBucket, test_id(read).gid())) ++read;
  REQUIRE(*machine.provider->is_damaged(kBucket));
  CHECK(machine.provider->mark_repaired(kBucket).code() == StatusCode::NotReady);
  for (bool renewed = false; !renewed;) renewed = machine.provider->renew(kBucket).value();
  // What a merge must bring back is known without a read of each document.
  std::size_t good = 0;
  const std::size_t listed = machine.provider->list_entries(kBucket)->size();
  for (int i = 0; i < kDocuments; ++i) good += machine.provider->get(kBucket, test_id(i).gid()).has_value() ? 1 : 0;
  CHECK(listed == good);
  REQUIRE(good < kDocuments);
  for (int i = 0; i < kDocuments; ++i) apply(*machine.provider, kBucket, test_put(i, 10, big_text(i)));
  CHECK(machine.provider->forget_lost(kBucket).is_ok());
  CHECK(*machine.provider->is_damaged(kBucket));
  REQUIRE(machine.provider->mark_repaired(kBucket).is_ok());
  machine.provider.reset();
  machine.env.locked([](sim::SimEnv& disk) { disk.lose_power_and_all_unsynced(); });
  machine.reopen();
  CHECK_FALSE(*machine.provider->is_damaged(kBucket));
  for (int i = 0; i < kDocuments; ++i) REQUIRE(machine.provider->get(kBucket, test_id(i).gid()).has_value());
  machine.pass_time();
  CHECK(machine.put_synced(test_put(0, 11)).is_ok());
}

TEST_CASE("leveldb: a bucket with unreadable metadata is split with what is left, into damaged halves") {
  constexpr std::size_t kDocuments = 400;  // Their metadata takes several blocks; the first block also has the catalog.
  std::vector<DocumentId> ids;
  for (std::size_t i = 0; i < kDocuments; ++i) ids.push_back(test_id(static_cast<int>(i)));
  std::sort(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return a.gid() < b.gid(); });
  const DocumentId lost = ids[kDocuments / 2];
  Machine machine;
  machine.options.write_buffer_bytes = 4 << 20;  // Large: one table, so that no compaction reads the damage.
  machine.reopen();
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  for (std::size_t i = 0; i < kDocuments; ++i) {
    REQUIRE(apply(*machine.provider, kBucket, test_put(static_cast<int>(i), 10)).status.is_ok());
  }
  machine.reopen();  // Moves everything from the log into a table.
  machine.damage_metadata_of(lost.gid());
  machine.reopen();
  const std::size_t left = machine.provider->list_entries(kBucket)->size();
  REQUIRE(left > 0);
  REQUIRE(left < kDocuments);
  REQUIRE(machine.provider->split_bucket(kBucket).is_ok());
  std::size_t entries = 0;
  for (const BucketId half : halves_of(kBucket)) {
    CHECK(machine.provider->is_damaged(half).value());
    entries += machine.provider->list_entries(half)->size();
  }
  CHECK(entries == left);
  CHECK(machine.provider->get(lost.bucket(9), lost.gid()).status().code() == StatusCode::Corruption);
}

TEST_CASE("leveldb: a compaction that meets damage ends all writing, and the engine says so") {
  Machine machine;
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  const auto put_many = [&](std::uint64_t timestamp) {
    Status status;
    for (int i = 0; i < 2000 && status; ++i) {
      status = apply(*machine.provider, kBucket, test_put(i % 200, timestamp + i / 200u, big_text(i))).status;
    }
    return status;
  };
  REQUIRE(put_many(10).is_ok());
  machine.reopen();
  REQUIRE(machine.damage_tables() > 0);
  machine.reopen();
  CHECK(put_many(1000).code() == StatusCode::IoError);
  CHECK(machine.provider->health().code() == StatusCode::IoError);
  for (int i = 0; i < 200; ++i) {
    const auto got = machine.provider->get(kBucket, test_id(i).gid());
    if (got) {
      const auto written = static_cast<int>(got->timestamp.us % 10) * 200 + i;
      CHECK(got->body == test_put(i, 1, big_text(written)).body);
    } else {
      CHECK(got.error().code() == StatusCode::Corruption);
    }
  }
}

TEST_CASE("leveldb: what was removed, and deleted buckets, go from the disk") {
  Machine machine;
  const auto disk_bytes = [&] { return machine.env.locked([](sim::SimEnv& disk) { return disk.used_bytes(); }); };
  const auto fill = [&](std::uint64_t timestamp) {
    REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
    for (int i = 0; i < 2000; ++i) {
      REQUIRE(apply(*machine.provider, kBucket, test_put(i, timestamp, big_text(i))).status.is_ok());
    }
    REQUIRE(disk_bytes() > 2'000'000);
  };
  fill(10);
  for (int i = 0; i < 2000; ++i) apply(*machine.provider, kBucket, test_remove(i, 20));
  machine.pass_time();
  CHECK(disk_bytes() < 1'000'000);
  fill(30);
  REQUIRE(machine.provider->delete_bucket(kBucket).is_ok());
  machine.pass_time();
  CHECK(disk_bytes() < 500'000);
  machine.reopen();
  CHECK(machine.provider->list_buckets().empty());
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  CHECK(machine.provider->list_entries(kBucket)->empty());
}

TEST_CASE("leveldb: the newest timestamp of a bucket follows when the newest remove is forgotten") {
  Machine machine;
  REQUIRE(machine.provider->create_bucket(kBucket).is_ok());
  for (int i = 0; i < 3000; ++i) apply(*machine.provider, kBucket, test_remove(i, static_cast<std::uint64_t>(100 + i)));
  apply(*machine.provider, kBucket, test_put(5000, 50));
  REQUIRE(machine.provider->forget_removes(kBucket, Timestamp{100'000}).is_ok());
  machine.pass_time();
  const BucketInfo info = machine.provider->bucket_info(kBucket).value();
  CHECK(info.entries == 1);
  CHECK(info.max_timestamp_us == 50);
  machine.reopen();
  CHECK(machine.provider->bucket_info(kBucket).value() == info);
}

}  // namespace fjord
