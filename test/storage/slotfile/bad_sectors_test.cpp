#include <algorithm>
#include <catch2/catch.hpp>
#include <fmt/core.h>
#include <set>

#include "fjord/sim/recording_env.h"
#include "fjord/testing/engine.h"
#include "slotfile_world.h"

/// Damage that cannot be mended at once: sectors that cannot be read, and buckets that wait for an intact replica.
namespace fjord {

namespace {

using namespace slotfile_testing;  // NOLINT: its test
using sim::DiskImage;
using sim::RecordingEnv;
using testing::OwnedWrite;
using testing::test_put;

constexpr int kDocuments = 24;
constexpr std::size_t kBodyBytes = 400;
constexpr std::size_t kListAt = 64 + 64;  ///< Offset of the first run's metadata entries.
constexpr std::size_t kEntry = 40;

/// A disk on which reads of some ranges fail.
class BadDisk final : public Env {
 public:
  explicit BadDisk(const DiskImage& files) : inner_(files) {}

  /// Makes reads fail that touch [begin, end) of the file.
  void break_sector(const std::string& path, std::size_t begin, std::size_t end) { bad_[path] = {begin, end}; }
  /// Changes bytes of a file behind the engine's back.
  void flip(const std::string& path, std::size_t at, std::size_t length) {
    auto file = *inner_.open_random_access(path);
    std::string bytes(length, '\0');
    REQUIRE(file->read(at, std::span<char>(bytes)).has_value());
    for (char& byte : bytes) byte = static_cast<char>(~byte);
    REQUIRE(file->write(at, bytes).is_ok());
  }

  Result<std::unique_ptr<RandomAccessFile>> open_random_access(const std::string& path) override {
    return wrap(path, inner_.open_random_access(path));
  }
  Result<std::unique_ptr<RandomAccessFile>> create_random_access(const std::string& path) override {
    return wrap(path, inner_.create_random_access(path));
  }
  Result<bool> exists(const std::string& path) override { return inner_.exists(path); }
  Result<std::vector<std::string>> list_directory(const std::string& path) override {
    return inner_.list_directory(path);
  }
  Status create_directories(const std::string& path) override { return inner_.create_directories(path); }
  Status remove_file(const std::string& path) override { return inner_.remove_file(path); }
  Status remove_all(const std::string& path) override { return inner_.remove_all(path); }
  Status rename(const std::string& from, const std::string& to) override { return inner_.rename(from, to); }
  Status sync_directory(const std::string& path) override { return inner_.sync_directory(path); }
  Result<SpaceInfo> space(const std::string& path) override { return inner_.space(path); }

 private:
  struct Range {
    std::size_t begin;
    std::size_t end;
  };
  using Ranges = std::map<std::string, Range>;

  class File final : public RandomAccessFile {
   public:
    File(std::string path, std::unique_ptr<RandomAccessFile> file, const Ranges& bad)
        : path_(std::move(path)), file_(std::move(file)), bad_(bad) {}
    Result<std::size_t> read(std::uint64_t offset, std::span<char> into) const override {
      const auto bad = bad_.find(path_);
      if (bad != bad_.end() && offset < bad->second.end && offset + into.size() > bad->second.begin) {
        return Status(StatusCode::IoError, path_ + ": this sector of the test cannot be read");
      }
      return file_->read(offset, into);
    }
    Status write(std::uint64_t offset, std::string_view data) override { return file_->write(offset, data); }
    Status write_gather(std::uint64_t offset, std::span<const std::string_view> pieces) override {
      return file_->write_gather(offset, pieces);
    }
    void start_writeback() override { file_->start_writeback(); }
    Status sync() override { return file_->sync(); }
    Result<std::uint64_t> size() const override { return file_->size(); }
    std::string_view mapped(std::uint64_t /*end*/) override { return {}; }
    void will_need(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}
    Status allocate(std::uint64_t size) override { return file_->allocate(size); }
    Status truncate(std::uint64_t size) override { return file_->truncate(size); }

   private:
    const std::string path_;
    std::unique_ptr<RandomAccessFile> file_;
    const Ranges& bad_;
  };

  Result<std::unique_ptr<RandomAccessFile>> wrap(const std::string& path,
                                                 Result<std::unique_ptr<RandomAccessFile>> file) {
    if (!file) return file;
    return std::unique_ptr<RandomAccessFile>(std::make_unique<File>(path, std::move(*file), bad_));
  }

  RecordingEnv inner_;
  Ranges bad_;
};

SlotfileOptions options(std::uint64_t scrub_bytes_per_second) {
  SlotfileOptions options = testing::tiny_slotfile_options("/buckets");
  options.limits = {};
  options.limits.dead_percent_max = 99;  // No slot is rewritten because of its dead bytes.
  options.limits.scrub_bytes_per_second = scrub_bytes_per_second;
  return options;
}
constexpr std::uint64_t kNoScrub = 0;
constexpr std::uint64_t kFastScrub = 1 << 30;

/// A store of some buckets with one slotfile each. A third of the documents have an older version.
struct Sound {
  DiskImage files;
  State state;
  std::map<BucketId, std::vector<OwnedWrite>> writes;
  std::map<BucketId, std::string> slotfile;  ///< Path of each bucket's slotfile.

  /// Returns the offset of a document's body in its slotfile.
  std::size_t body_at(BucketId bucket, int document) const {
    return files.at(slotfile.at(bucket)).find(writes.at(bucket).at(static_cast<std::size_t>(document)).body);
  }
};

OwnedWrite document(BucketId bucket, int n, std::uint64_t timestamp) {
  const std::string name = fmt::format("<body {} of {} at {}>", n, bucket.to_string(), timestamp);
  return test_put(number_in(bucket, n), timestamp, fmt::format("{:{}}", name, kBodyBytes));
}

Sound make_sound(const std::vector<BucketId>& buckets, const SlotfileOptions& with = options(kNoScrub)) {
  Sound sound;
  RecordingEnv env;
  Machine machine(env, with);
  REQUIRE(machine.open().is_ok());
  for (const BucketId bucket : buckets) {
    REQUIRE(machine.provider().create_bucket(bucket).is_ok());
    std::vector<OwnedWrite> older;
    for (int n = 0; n < kDocuments; ++n) {
      if (n % 3 == 0) older.push_back(document(bucket, n, 10));
      sound.writes[bucket].push_back(document(bucket, n, 20));
    }
    REQUIRE(machine.run(put_step(bucket, older)).is_ok());
    REQUIRE(machine.run(checkpoint_step()).is_ok());
    REQUIRE(machine.run(put_step(bucket, sound.writes[bucket])).is_ok());
    REQUIRE(machine.run(checkpoint_step()).is_ok());
  }
  sound.state = observe(machine.provider()).state;
  machine.close();
  env.visit_process_ends(env.changes(), [&](const DiskImage& image, const std::string&) { sound.files = image; });
  for (const auto& [path, content] : sound.files) {
    if (!path.ends_with(".slot")) continue;
    for (const BucketId bucket : buckets) {
      if (content.find(sound.writes[bucket].front().body) != std::string::npos) sound.slotfile[bucket] = path;
    }
  }
  return sound;
}

/// Calls maintain() for `seconds` of virtual time, whenever the engine asks for it.
void pass_time(spi::PersistenceProvider& provider, MonotonicTime& now, double seconds) {
  const MonotonicTime end = now + Duration(static_cast<std::int64_t>(seconds * 1e6));
  while (now < end) {
    const spi::Maintenance left = provider.maintain(now);
    now = std::min(end, now + std::max<Duration>(left.more ? Duration(0) : left.next_in, std::chrono::milliseconds(1)));
  }
}

/// Returns true if the bucket is renewed within some calls.
bool renew(spi::PersistenceProvider& provider, BucketId bucket) {
  constexpr int kStepsMost = 1000;
  for (int step = 0; step < kStepsMost; ++step) {
    const Result<bool> done = provider.renew(bucket);
    if (done && *done) return true;
  }
  return false;
}

/// Writes what the bucket lacks, as a merge from an intact replica does. Returns the number of writes.
std::size_t bring_back(Machine& machine, const Sound& sound, BucketId bucket) {
  std::map<GlobalId, Timestamp> here;
  const auto entries = machine.provider().list_entries(bucket);
  REQUIRE(entries.has_value());
  for (const spi::EntryMeta& entry : *entries) here[entry.gid] = entry.timestamp;
  std::size_t writes = 0;
  for (const OwnedWrite& one : sound.writes.at(bucket)) {
    const auto found = here.find(one.gid);
    if (found != here.end() && found->second == one.timestamp) continue;
    REQUIRE(machine.run(put_step(bucket, {one})).is_ok());
    ++writes;
  }
  return writes;
}

StatusCode read(Machine& machine, const Sound& sound, BucketId bucket, int document) {
  const OwnedWrite& write = sound.writes.at(bucket).at(static_cast<std::size_t>(document));
  return machine.provider().get(bucket, write.gid, spi::Parts::All).status().code();
}

}  // namespace

TEST_CASE("slotfile: a slot that cannot be rewritten does not keep others waiting") {
  const Sound sound = make_sound({kWhole, kParent});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kNoScrub));
  for (const BucketId bucket : {kWhole, kParent}) disk.flip(sound.slotfile.at(bucket), 0, 64);
  REQUIRE(machine.open().is_ok());
  for (const BucketId bucket : {kWhole, kParent}) REQUIRE(machine.provider().list_entries(bucket).has_value());
  const std::size_t sector = sound.body_at(kWhole, 5);
  disk.break_sector(sound.slotfile.at(kWhole), sector, sector + 100);
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 5);
  CHECK_FALSE(*disk.exists(sound.slotfile.at(kParent)));
  CHECK(*disk.exists(sound.slotfile.at(kWhole)));
  CHECK_FALSE(*machine.provider().is_damaged(kWhole));
}

TEST_CASE("slotfile: a put does not fail with the rewrite that it has to wait for") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  SlotfileOptions little_memory = options(kNoScrub);
  little_memory.limits.held_bytes_max = 4 * kBodyBytes;
  Machine machine(disk, little_memory);
  disk.flip(sound.slotfile.at(kWhole), 0, 64);
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().list_entries(kWhole).has_value());
  const std::size_t sector = sound.body_at(kWhole, 5);
  disk.break_sector(sound.slotfile.at(kWhole), sector, sector + 100);
  REQUIRE(machine.provider().maintain(MonotonicTime{1'000'000}).more);  // The rewrite of the bad header begins.
  for (int n = 0; n < kDocuments; ++n) {
    INFO(n);
    CHECK(machine.run(put_step(kWhole, {document(kWhole, n, 30)})).is_ok());
  }
  CHECK(machine.provider().list_entries(kWhole)->size() == kDocuments);
}

TEST_CASE("slotfile: a bucket is renewed although a slot of another one cannot be rewritten") {
  const Sound sound = make_sound({kWhole, kParent});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kNoScrub));
  disk.flip(sound.slotfile.at(kWhole), 0, 64);
  disk.flip(sound.slotfile.at(kParent), sound.body_at(kParent, 3), 1);
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().list_entries(kWhole).has_value());
  const std::size_t sector = sound.body_at(kWhole, 5);
  disk.break_sector(sound.slotfile.at(kWhole), sector, sector + 100);
  REQUIRE(read(machine, sound, kParent, 3) == StatusCode::Corruption);
  CHECK(renew(machine.provider(), kParent));
  CHECK(bring_back(machine, sound, kParent) == 1);
  CHECK(machine.provider().mark_repaired(kParent).is_ok());
}

TEST_CASE("slotfile: documents in a sector that cannot be read are lost when their bucket is renewed") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kNoScrub));
  const std::size_t sector = sound.body_at(kWhole, 5);
  disk.break_sector(sound.slotfile.at(kWhole), sector + 10, sector + 20);
  disk.flip(sound.slotfile.at(kWhole), sound.body_at(kWhole, 20), 1);
  REQUIRE(machine.open().is_ok());
  REQUIRE(read(machine, sound, kWhole, 20) == StatusCode::Corruption);
  CHECK(read(machine, sound, kWhole, 5) == StatusCode::IoError);
  REQUIRE(renew(machine.provider(), kWhole));
  CHECK(bring_back(machine, sound, kWhole) == 2);
  REQUIRE(machine.provider().mark_repaired(kWhole).is_ok());
  CHECK(observe(machine.provider()).state == sound.state);
}

TEST_CASE("slotfile: the scrub puts what cannot be read in quarantine and reads on") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kFastScrub));
  const std::size_t sector = sound.body_at(kWhole, 5);
  disk.break_sector(sound.slotfile.at(kWhole), sector + 10, sector + 20);
  disk.flip(sound.slotfile.at(kWhole), sound.body_at(kWhole, 20), 1);
  REQUIRE(machine.open().is_ok());
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 5);
  CHECK(machine.provider().take_damaged() == std::vector{kWhole});
  CHECK(machine.provider().list_entries(kWhole)->size() == kDocuments - 2);
  CHECK(read(machine, sound, kWhole, 5) == StatusCode::Corruption);
  // Without an intact replica nothing of the file is dropped.
  CHECK(*disk.exists(sound.slotfile.at(kWhole)));
}

TEST_CASE("slotfile: an unreadable list of a file whose index is in memory is written again") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kFastScrub));
  REQUIRE(machine.open().is_ok());
  REQUIRE(machine.provider().list_entries(kWhole).has_value());
  disk.break_sector(sound.slotfile.at(kWhole), kListAt, kListAt + kEntry);
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 5);
  CHECK_FALSE(*disk.exists(sound.slotfile.at(kWhole)));
  CHECK(observe(machine.provider()).state == sound.state);
}

TEST_CASE("slotfile: an unreadable list is lost when its bucket is renewed, and the scrub says so") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kFastScrub));
  disk.break_sector(sound.slotfile.at(kWhole), kListAt, kListAt + kEntry);
  REQUIRE(machine.open().is_ok());
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 5);
  CHECK(machine.provider().take_damaged() == std::vector{kWhole});
  REQUIRE(*machine.provider().is_damaged(kWhole));
  CHECK(*disk.exists(sound.slotfile.at(kWhole)));
  REQUIRE(renew(machine.provider(), kWhole));
  CHECK(bring_back(machine, sound, kWhole) == kDocuments);
  REQUIRE(machine.provider().mark_repaired(kWhole).is_ok());
  CHECK(observe(machine.provider()).state == sound.state);
}

TEST_CASE("slotfile: a damaged file stays until its bucket is renewed") {
  const bool is_known = GENERATE(true, false);
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kNoScrub));
  disk.flip(sound.slotfile.at(kWhole), sound.body_at(kWhole, 5), 1);
  REQUIRE(machine.open().is_ok());
  if (is_known) REQUIRE(read(machine, sound, kWhole, 5) == StatusCode::Corruption);
  REQUIRE(machine.run(compact_step()).is_ok());
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  CHECK(*disk.exists(sound.slotfile.at(kWhole)));
  CHECK(*machine.provider().is_damaged(kWhole));
  CHECK(read(machine, sound, kWhole, 5) == StatusCode::Corruption);
  CHECK(machine.provider().list_entries(kWhole)->size() == kDocuments - 1);
  REQUIRE(renew(machine.provider(), kWhole));
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  CHECK_FALSE(*disk.exists(sound.slotfile.at(kWhole)));
}

TEST_CASE("slotfile: a damaged file stays when its bucket is split, although nothing of it is left") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kNoScrub));
  for (int n = 0; n < kDocuments; ++n) disk.flip(sound.slotfile.at(kWhole), sound.body_at(kWhole, n), 1);
  REQUIRE(machine.open().is_ok());
  for (int n = 0; n < kDocuments; ++n) REQUIRE(read(machine, sound, kWhole, n) == StatusCode::Corruption);
  REQUIRE(machine.provider().split_bucket(kWhole).is_ok());
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  CHECK(*disk.exists(sound.slotfile.at(kWhole)));
  for (const BucketId half : halves_of(kWhole)) {
    CHECK(*machine.provider().is_damaged(half));
    CHECK(machine.provider().list_entries(half)->empty());
    CHECK(renew(machine.provider(), half));
  }
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  CHECK_FALSE(*disk.exists(sound.slotfile.at(kWhole)));
}

TEST_CASE("slotfile: slots of a damaged bucket are not joined until it is renewed") {
  SlotfileOptions several = options(kNoScrub);
  several.limits.entries_max = 6;
  const Sound sound = make_sound({kWhole}, several);
  BadDisk disk(sound.files);
  Machine machine(disk, several);
  const OwnedWrite& lost = sound.writes.at(kWhole)[5];
  for (const auto& [path, content] : sound.files) {
    const std::size_t at = path.ends_with(".slot") ? content.find(lost.body) : std::string::npos;
    if (at != std::string::npos) disk.flip(path, at, 1);
  }
  REQUIRE(machine.open().is_ok());
  REQUIRE(read(machine, sound, kWhole, 5) == StatusCode::Corruption);
  const unsigned slots = *machine.provider().slots_of(kWhole);
  REQUIRE(slots > 2);
  REQUIRE(machine.provider().set_limits(options(kNoScrub).limits).is_ok());
  settle(machine.provider());
  CHECK(*machine.provider().slots_of(kWhole) == slots);
  REQUIRE(renew(machine.provider(), kWhole));
  settle(machine.provider());
  CHECK(*machine.provider().slots_of(kWhole) < slots);
}

TEST_CASE("slotfile: an index stays in memory while the list in the file does not verify") {
  const Sound sound = make_sound({kWhole, kParent});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kFastScrub));
  disk.flip(sound.slotfile.at(kWhole), sound.body_at(kWhole, 5), 1);
  REQUIRE(machine.open().is_ok());
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 5);
  REQUIRE(*machine.provider().is_damaged(kWhole));
  // What was lost is back, but the bucket is not marked as repaired.
  REQUIRE(bring_back(machine, sound, kWhole) == 1);
  REQUIRE(machine.run(checkpoint_step()).is_ok());
  // The metadata entry of a document's newest version.
  const GlobalId gid = sound.writes.at(kWhole)[7].gid;
  disk.flip(sound.slotfile.at(kWhole), sound.files.at(sound.slotfile.at(kWhole)).rfind(gid.view()) - 8, kEntry);
  pass_time(machine.provider(), now, 700);
  SlotfileLimits limits = machine.provider().limits();
  limits.index_bytes_max = 1;
  REQUIRE(machine.provider().set_limits(limits).is_ok());
  REQUIRE(machine.provider().list_entries(kParent).has_value());
  CHECK(machine.provider().list_entries(kWhole)->size() == kDocuments);
  REQUIRE(renew(machine.provider(), kWhole));
  CHECK(observe(machine.provider()).state == sound.state);
}

TEST_CASE("slotfile: the scrub rests when the bucket with the damage is gone") {
  const Sound sound = make_sound({kWhole});
  BadDisk disk(sound.files);
  Machine machine(disk, options(kFastScrub));
  disk.flip(sound.slotfile.at(kWhole), sound.body_at(kWhole, 5), 1);
  REQUIRE(machine.open().is_ok());
  REQUIRE(read(machine, sound, kWhole, 5) == StatusCode::Corruption);
  REQUIRE(machine.provider().delete_bucket(kWhole).is_ok());
  MonotonicTime now{1'000'000};
  pass_time(machine.provider(), now, 5);
  CHECK(machine.provider().maintain(now).next_in >= std::chrono::milliseconds(50));
}

TEST_CASE("slotfile: rewrites of damaged files do not have checkpoints follow each other at once") {
  constexpr int kBuckets = 10;
  std::vector<BucketId> buckets;
  RecordingEnv made;
  Machine maker(made, options(kNoScrub));
  REQUIRE(maker.open().is_ok());
  for (int n = 0; n < kBuckets; ++n) {
    const OwnedWrite write = document(kWhole, n, 10);
    buckets.push_back(bucket_of(write.gid, BucketId::kUsedBitsMax));
    REQUIRE(maker.provider().create_bucket(buckets.back()).is_ok());
    REQUIRE(maker.run(put_step(buckets.back(), {write})).is_ok());
  }
  REQUIRE(maker.run(checkpoint_step()).is_ok());
  maker.close();
  DiskImage files;
  made.visit_process_ends(made.changes(), [&](const DiskImage& image, const std::string&) { files = image; });
  BadDisk disk(files);
  for (const auto& [path, content] : files) {
    if (path.ends_with(".slot")) disk.flip(path, 0, 64);
  }
  Machine machine(disk, options(kNoScrub));
  REQUIRE(machine.open().is_ok());
  MonotonicTime now{10'000'000};
  const std::uint64_t before = machine.provider().stats().checkpoints;
  for (const BucketId bucket : buckets) {
    REQUIRE(machine.provider().list_entries(bucket).has_value());
    pass_time(machine.provider(), now, 0.1);
  }
  CHECK(machine.provider().stats().rewrites >= 5);
  CHECK(machine.provider().stats().checkpoints - before <= 3);
  pass_time(machine.provider(), now, 2);
  for (const auto& [path, content] : files) {
    if (path.ends_with(".slot")) CHECK_FALSE(*disk.exists(path));
  }
}

}  // namespace fjord
