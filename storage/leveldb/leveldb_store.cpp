#include "leveldb_store.h"

#include <fmt/format.h>
#include <utility>

#include "fjord/common/log.h"

namespace fjord::leveldb_store {

namespace {

constexpr int kFilterBitsPerKey = 10;
constexpr Duration kRetryAfter = std::chrono::seconds(1);
/// Free space needed to open the database again, as a number of write buffers: opening writes a table from the log and
/// begins a new log.
constexpr std::uint64_t kBuffersToOpen = 4;

Status from_leveldb(const leveldb::Status& status) {
  if (status.ok()) return Status::ok();
  const StatusCode code = status.IsNotFound()     ? StatusCode::NotFound
                          : status.IsCorruption() ? StatusCode::Corruption
                                                  : StatusCode::IoError;
  return Status(code, status.ToString());
}

}  // namespace

Scan::Scan(std::unique_ptr<leveldb::Iterator> at, std::string prefix) : at_(std::move(at)), prefix_(std::move(prefix)) {
  at_->Seek(slice(prefix_));
}

Result<std::string_view> Scan::find(std::string_view wanted) {
  constexpr int kStepsBeforeSeek = 4;
  for (int step = 0; step < kStepsBeforeSeek && valid() && key() < wanted; ++step) next();
  if (!valid() || key() != wanted) seek(wanted);
  if (valid() && key() == wanted) return value();
  FJORD_TRY(status());
  return Status(StatusCode::NotFound, "no such key");
}

Status Scan::status() const { return from_leveldb(at_->status()); }

Store::Store(Env& env, const LeveldbOptions& options)
    : env_(env),
      options_(options),
      path_(fmt::format("{}/leveldb-{}", options.directory, options.stripe)),
      adapter_(env),
      log_(make_log_adapter()),
      cache_(leveldb::NewLRUCache(options.cache_bytes)),
      filter_(leveldb::NewBloomFilterPolicy(kFilterBitsPerKey)) {}

Store::~Store() = default;

leveldb::Options Store::database_options() const {
  leveldb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;
  options.env = const_cast<EnvAdapter*>(&adapter_);
  options.info_log = log_.get();
  options.block_cache = cache_.get();
  options.filter_policy = filter_.get();
  options.write_buffer_size = options_.write_buffer_bytes;
  options.max_open_files = options_.open_files_max;
  return options;
}

Result<std::unique_ptr<Store>> Store::open(Env& env, const LeveldbOptions& options) {
  std::unique_ptr<Store> store(new Store(env, options));
  FJORD_TRY(env.create_directories(store->path_));
  FJORD_TRY(env.sync_directory(options.directory));
  Status status = store->open_database();
  if (status.code() == StatusCode::Corruption) {
    // After a loss of power, usually the end of the log cannot be read. LevelDB does not tell which writes are missing,
    // so the readable part is used and every bucket counts as damaged.
    log::error("leveldb", "{}; opened without what cannot be read", status.to_string());
    leveldb::Options lenient = store->database_options();
    lenient.paranoid_checks = false;
    leveldb::DB* database = nullptr;
    const leveldb::Status opened = leveldb::DB::Open(lenient, store->path_, &database);
    delete database;
    if (!opened.ok()) return status;
    store->lost_writes_ = true;
    status = store->open_database();
  }
  FJORD_TRY(std::move(status));
  return store;
}

Status Store::open_database() {
  db_.reset();
  ++opened_;
  adapter_.failures().reset();
  leveldb::DB* database = nullptr;
  const leveldb::Status opened = leveldb::DB::Open(database_options(), path_, &database);
  db_.reset(database);
  return opened.ok() ? Status::ok() : from(opened).with_context(path_);
}

/// Converts a status, using the failure that the files reported, because LevelDB passes on only its text.
Status Store::from(const leveldb::Status& status) const {
  if (status.ok()) return Status::ok();
  const Status failure = const_cast<EnvAdapter&>(adapter_).failures().last();
  if (!failure && failure.code() == StatusCode::NoSpace) return failure;
  return from_leveldb(status);
}

Status Store::health() const {
  FJORD_TRY(health_);
  return const_cast<EnvAdapter&>(adapter_).failures().in_doubt();
}

Status Store::write(leveldb::WriteBatch& batch, bool sync) {
  FJORD_TRY(health());
  FJORD_TRY(refusal_);
  leveldb::WriteOptions options;
  options.sync = sync;
  const leveldb::Status written = db_->Write(options, &batch);
  if (written.ok()) return Status::ok();
  if (const Status in_doubt = adapter_.failures().in_doubt(); !in_doubt) {
    health_ = in_doubt.with_context(path_ + ": closed until the next start");
    log::error("leveldb", "{}", health_.to_string());
    return sync ? Status(StatusCode::Timeout, "in doubt: " + health_.message()) : health_;
  }
  refusal_ = from(written);
  // A compaction found damage and would find it again, so opening the database again does not help.
  if (refusal_.code() == StatusCode::Corruption) {
    health_ = Status(StatusCode::IoError, path_ + " takes no writes any more: " + refusal_.message());
    log::error("leveldb", "{}", health_.to_string());
    return health_;
  }
  log::warning("leveldb", "{}: a write failed: {}", path_, refusal_.to_string());
  return refusal_;
}

void Store::recover(MonotonicTime now) {
  if (refusal_.is_ok() || !health() || now < retry_at_) return;
  retry_at_ = now + kRetryAfter;
  if (refusal_.code() == StatusCode::NoSpace) {
    const Result<SpaceInfo> space = env_.space(options_.directory);
    if (!space || space->free_bytes < kBuffersToOpen * options_.write_buffer_bytes) return;
  }
  refusal_ = open_database();
  if (refusal_) log::info("leveldb", "{} takes writes again", path_);
}

void Store::compact(const std::string& prefix) {
  if (db_ == nullptr || is_refusing()) return;
  // This key sorts after every key that begins with `prefix`.
  const std::string end = prefix + std::string(32, '\xff');
  const leveldb::Slice first = slice(prefix);
  const leveldb::Slice last = slice(end);
  db_->CompactRange(&first, &last);
}

Status Store::get(std::string_view key, std::string& value) {
  if (db_ == nullptr) return refusal_;
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  return from_leveldb(db_->Get(options, slice(key), &value));
}

StoreSnapshot::StoreSnapshot(Store& store)
    : store_(store), opened_(store.opened_), snapshot_(store.db_ == nullptr ? nullptr : store.db_->GetSnapshot()) {}

StoreSnapshot::~StoreSnapshot() {
  if (snapshot_ != nullptr && store_.opened_ == opened_) store_.db_->ReleaseSnapshot(snapshot_);
}

Result<Scan> Store::scan(std::string prefix, bool keep, const StoreSnapshot* snapshot) {
  if (db_ == nullptr) return refusal_;
  leveldb::ReadOptions options;
  if (snapshot != nullptr) {
    if (snapshot->opened_ != opened_ || snapshot->snapshot_ == nullptr) {
      return Status(StatusCode::NotReady, path_ + " was opened again while it was read");
    }
    options.snapshot = snapshot->snapshot_;
  }
  options.verify_checksums = true;
  options.fill_cache = keep;
  return Scan(std::unique_ptr<leveldb::Iterator>(db_->NewIterator(options)), std::move(prefix));
}

}  // namespace fjord::leveldb_store
