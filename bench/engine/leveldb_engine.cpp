#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#include <thread>

#include "engine_under_test.h"

namespace fjord::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct LeveldbSettings {
  bool tuned = false;
  bool verify = false;
  std::size_t write_buffer_bytes = 0;
  std::size_t file_bytes = 0;
  std::size_t block_bytes = 0;
  std::size_t cache_bytes = 0;
};

Status from(const leveldb::Status& status) {
  if (status.ok()) return Status::ok();
  const StatusCode code = status.IsNotFound()     ? StatusCode::NotFound
                          : status.IsCorruption() ? StatusCode::Corruption
                                                  : StatusCode::IoError;
  return Status(code, status.ToString());
}

leveldb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
std::string_view view(const leveldb::Slice& slice) { return {slice.data(), slice.size()}; }

class LeveldbEngine : public EngineUnderTest {
 public:
  using EngineUnderTest::iterate;

  explicit LeveldbEngine(const LeveldbSettings& settings) : settings_(settings) {}

  Status open(const std::string& directory, EngineDurability durability) override {
    directory_ = directory;
    leveldb::Options options;
    options.create_if_missing = true;
    if (settings_.tuned) {
      if (!filter_) filter_.reset(leveldb::NewBloomFilterPolicy(10));
      cache_.reset(leveldb::NewLRUCache(settings_.cache_bytes));
      options.filter_policy = filter_.get();
      options.block_cache = cache_.get();
      options.compression = leveldb::kNoCompression;
      options.write_buffer_size = settings_.write_buffer_bytes;
      options.max_file_size = settings_.file_bytes;
      options.block_size = settings_.block_bytes;
      options.max_open_files = 10'000;
    }
    write_options_.sync = durability == EngineDurability::Sync;
    leveldb::DB* db = nullptr;
    FJORD_TRY(from(leveldb::DB::Open(options, directory, &db)));
    db_.reset(db);
    return Status::ok();
  }

  Status put_batch(std::span<const EngineWrite> writes) override {
    batch_.Clear();
    for (const EngineWrite& write : writes) batch_.Put(slice(write.gid.view()), slice(write.stored));
    return from(db_->Write(write_options_, &batch_));
  }

  Status remove_batch(std::span<const EngineWrite> writes) override {
    batch_.Clear();
    for (const EngineWrite& write : writes) batch_.Delete(slice(write.gid.view()));
    return from(db_->Write(write_options_, &batch_));
  }

  Result<EngineDocument> get(const EngineKey& key) override {
    leveldb::ReadOptions options;
    options.verify_checksums = settings_.verify;
    FJORD_TRY(from(db_->Get(options, slice(key.gid.view()), &value_)));
    return StoredForm::read(key.gid.view(), value_);
  }

  Status iterate(const DocumentSink& sink) override {
    leveldb::ReadOptions options;
    options.verify_checksums = settings_.verify;
    options.fill_cache = !settings_.tuned;  // A full iteration would evict the blocks that gets use.
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator(options));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      FJORD_TRY_ASSIGN(const EngineDocument document, StoredForm::read(view(at->key()), view(at->value())));
      sink(document);
    }
    return from(at->status());
  }

  Status settle() override {
    if (settings_.tuned) {
      db_->CompactRange(nullptr, nullptr);
      return Status::ok();
    }
    // LevelDB does not tell whether a compaction runs. A compaction changes the list of files: wait until it stays
    // equal.
    for (std::string before, now = listing();; before = now, now = listing()) {
      if (now == before) return Status::ok();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
  }

  Status close() override {
    db_.reset();
    return Status::ok();
  }

 private:
  std::string listing() const {
    std::string text;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
      text += fmt::format("{} {}\n", entry.path().string(), entry.file_size(error));
    }
    return text;
  }

  const LeveldbSettings settings_;
  std::string directory_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<leveldb::Cache> cache_;
  leveldb::WriteOptions write_options_;
  leveldb::WriteBatch batch_;
  std::string value_;
  std::unique_ptr<leveldb::DB> db_;  // The last member, because it uses the others.
};

LeveldbSettings tuned(DocumentSize size) {
  if (size == DocumentSize::Small) {
    return {.tuned = true,
            .write_buffer_bytes = 128 * kMiB,
            .file_bytes = 64 * kMiB,
            .block_bytes = 16 << 10,
            .cache_bytes = 1024 * kMiB};
  }
  return {.tuned = true,
          .write_buffer_bytes = 512 * kMiB,
          .file_bytes = 256 * kMiB,
          .block_bytes = 64 << 10,
          .cache_bytes = 1024 * kMiB};
}

}  // namespace

std::vector<EngineConfiguration> leveldb_configurations() {
  return {
      {.name = "leveldb-default",
       .family = "leveldb",
       .settings = "all defaults (Snappy, 4 MiB write buffer, 8 MiB block cache, checksums are not verified)",
       .make = [](DocumentSize) { return std::make_unique<LeveldbEngine>(LeveldbSettings{}); }},
      {.name = "leveldb-tuned",
       .family = "leveldb",
       .settings = "no compression; write buffer 128 MiB (large documents: 512), files of 64 MiB (256), blocks of "
                   "16 KiB (64), block cache 1 GiB, Bloom filter of 10 bits; iterations do not fill the cache; "
                   "settled by a full compaction",
       .make = [](DocumentSize size) { return std::make_unique<LeveldbEngine>(tuned(size)); }},
      {.name = "leveldb-verified",
       .family = "leveldb",
       .settings =
           "as leveldb-tuned, but verifies the checksum of each block that it reads, which the others do by default",
       .make = [](DocumentSize size) {
         LeveldbSettings settings = tuned(size);
         settings.verify = true;
         return std::make_unique<LeveldbEngine>(settings);
       }}};
}

}  // namespace fjord::bench
