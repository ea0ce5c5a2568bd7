#include <chrono>
#include <fmt/format.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>
#include <thread>

#include "engine_under_test.h"

namespace fjord::bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

Status from(const rocksdb::Status& status) {
  if (status.ok()) return Status::ok();
  const StatusCode code = status.IsNotFound()     ? StatusCode::NotFound
                          : status.IsCorruption() ? StatusCode::Corruption
                                                  : StatusCode::IoError;
  return Status(code, status.ToString());
}

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

enum class RocksdbKind : std::uint8_t { Default, Tuned, Mmap };

/// Returns the options that do not depend on the document size: two cores, no compression, one writer at a time.
rocksdb::Options tuned_options() {
  rocksdb::Options options;
  options.max_background_jobs = 4;
  options.max_subcompactions = 2;
  options.compression = rocksdb::kNoCompression;
  options.bottommost_compression = rocksdb::kNoCompression;
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = false;
  options.max_open_files = -1;
  options.level_compaction_dynamic_level_bytes = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.recycle_log_file_num = 4;  // A synced write does not change the size of a recycled log.
  options.advise_random_on_open = false;
  return options;
}

rocksdb::BlockBasedTableOptions tuned_table_options() {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  table.format_version = 5;
  table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  return table;
}

rocksdb::Options options_for_small() {
  rocksdb::Options options = tuned_options();
  options.write_buffer_size = 128 * kMiB;
  options.max_write_buffer_number = 6;
  options.target_file_size_base = 128 * kMiB;
  options.max_bytes_for_level_base = 512 * kMiB;
  rocksdb::BlockBasedTableOptions table = tuned_table_options();
  table.block_size = 16 << 10;
  table.block_cache = rocksdb::NewLRUCache(2048 * kMiB, 4);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Options options_for_large() {
  rocksdb::Options options = tuned_options();
  options.write_buffer_size = 256 * kMiB;
  options.max_write_buffer_number = 6;
  options.target_file_size_base = 256 * kMiB;
  options.max_bytes_for_level_base = 1024 * kMiB;
  options.enable_blob_files = true;
  options.min_blob_size = 4096;
  options.blob_file_size = 256 * kMiB;
  options.blob_compression_type = rocksdb::kNoCompression;
  options.blob_cache = rocksdb::NewLRUCache(6144 * kMiB, 4);
  options.enable_blob_garbage_collection = true;
  options.blob_garbage_collection_age_cutoff = 1.0;
  options.blob_garbage_collection_force_threshold = 0.5;
  options.blob_compaction_readahead_size = 4 * kMiB;
  options.bytes_per_sync = 1 * kMiB;
  options.wal_bytes_per_sync = 1 * kMiB;
  rocksdb::BlockBasedTableOptions table = tuned_table_options();
  table.block_cache = rocksdb::NewLRUCache(512 * kMiB, 4);
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::Options options_for(RocksdbKind kind, DocumentSize size) {
  if (kind == RocksdbKind::Default) return {};
  rocksdb::Options options = size == DocumentSize::Small ? options_for_small() : options_for_large();
  if (kind == RocksdbKind::Mmap) {
    options.allow_mmap_reads = true;
    options.enable_blob_files = false;
    options.blob_cache.reset();
  }
  return options;
}

class RocksdbEngine : public EngineUnderTest {
 public:
  using EngineUnderTest::iterate;

  RocksdbEngine(RocksdbKind kind, DocumentSize size) : kind_(kind), size_(size) {}

  Status open(const std::string& directory, EngineDurability durability) override {
    rocksdb::Options options = options_for(kind_, size_);
    options.create_if_missing = true;
    write_options_.sync = durability == EngineDurability::Sync;
    rocksdb::DB* db = nullptr;
    FJORD_TRY(from(rocksdb::DB::Open(options, directory, &db)));
    db_.reset(db);
    return Status::ok();
  }

  Status put_batch(std::span<const EngineWrite> writes) override {
    batch_.Clear();
    for (const EngineWrite& write : writes) {
      FJORD_TRY(from(batch_.Put(slice(write.gid.view()), slice(write.stored))));
    }
    return from(db_->Write(write_options_, &batch_));
  }

  Status remove_batch(std::span<const EngineWrite> writes) override {
    batch_.Clear();
    for (const EngineWrite& write : writes) FJORD_TRY(from(batch_.Delete(slice(write.gid.view()))));
    return from(db_->Write(write_options_, &batch_));
  }

  Result<EngineDocument> get(const EngineKey& key) override {
    value_.Reset();
    FJORD_TRY(from(db_->Get({}, db_->DefaultColumnFamily(), slice(key.gid.view()), &value_)));
    return StoredForm::read(key.gid.view(), value_.ToStringView());
  }

  Status iterate(const DocumentSink& sink) override {
    rocksdb::ReadOptions options;
    if (kind_ != RocksdbKind::Default) {
      options.readahead_size = 2 * kMiB;
      options.fill_cache = false;
    }
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      FJORD_TRY_ASSIGN(const EngineDocument document,
                       StoredForm::read(at->key().ToStringView(), at->value().ToStringView()));
      sink(document);
    }
    return from(at->status());
  }

  Status settle() override {
    FJORD_TRY(from(db_->Flush({})));
    if (kind_ != RocksdbKind::Default) FJORD_TRY(from(db_->CompactRange({}, nullptr, nullptr)));
    while (number(rocksdb::DB::Properties::kCompactionPending) +
               number(rocksdb::DB::Properties::kMemTableFlushPending) +
               number(rocksdb::DB::Properties::kNumRunningCompactions) +
               number(rocksdb::DB::Properties::kNumRunningFlushes) !=
           0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return Status::ok();
  }

  Status close() override {
    value_.Reset();
    if (!db_) return Status::ok();
    const Status status = from(db_->Close());
    db_.reset();
    return status;
  }

 private:
  std::uint64_t number(const std::string& property) const {
    std::uint64_t value = 0;
    db_->GetIntProperty(property, &value);
    return value;
  }

  const RocksdbKind kind_;
  const DocumentSize size_;
  rocksdb::WriteOptions write_options_;
  rocksdb::WriteBatch batch_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::PinnableSlice value_;  // The last member: it refers to memory in the cache of db_.
};

}  // namespace

std::vector<EngineConfiguration> rocksdb_configurations() {
  return {
      {.name = "rocksdb-default",
       .family = "rocksdb",
       .settings = "all defaults (Snappy, 64 MiB write buffer, 8 MiB block cache)",
       .make = [](DocumentSize size) { return std::make_unique<RocksdbEngine>(RocksdbKind::Default, size); }},
      {.name = "rocksdb-tuned",
       .family = "rocksdb",
       .settings = "no compression; write buffers of 128 MiB (large documents: 256), up to 6; files of 128 MiB (256); "
                   "blocks of 16 KiB with hash index, Bloom filter of 10 bits, block cache 2 GiB; large documents in "
                   "blob files of 256 MiB with collection of garbage and a blob cache of 6 GiB; logs used again; 4 "
                   "background jobs; one writer; iterations read 2 MiB ahead and do not fill the cache; settled by a "
                   "full compaction",
       .make = [](DocumentSize size) { return std::make_unique<RocksdbEngine>(RocksdbKind::Tuned, size); }},
      {.name = "rocksdb-mmap",
       .family = "rocksdb",
       .settings = "as rocksdb-tuned, but reads through mapped files, and large documents in the tables",
       .make = [](DocumentSize size) { return std::make_unique<RocksdbEngine>(RocksdbKind::Mmap, size); }}};
}

}  // namespace fjord::bench
