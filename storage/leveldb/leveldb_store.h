#pragma once

#include <cstdint>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#include <memory>
#include <string>
#include <string_view>

#include "fjord/common/clock.h"
#include "fjord/storage/leveldb/leveldb_provider.h"
#include "leveldb_env.h"

namespace fjord::leveldb_store {

inline leveldb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
inline std::string_view view(const leveldb::Slice& bytes) { return {bytes.data(), bytes.size()}; }

/// Iterates over the keys with a prefix, in order. Unreadable keys are skipped; `status` reports them.
/// Lifetime: ends before recover() opens the store again, so within one call of the engine.
class Scan {
 public:
  Scan(std::unique_ptr<leveldb::Iterator> at, std::string prefix);
  /// Moves to the first key not before `key`, which must have the prefix.
  void seek(std::string_view key) { at_->Seek(slice(key)); }
  bool valid() const { return at_->Valid() && view(at_->key()).starts_with(prefix_); }
  void next() { at_->Next(); }
  std::string_view key() const { return view(at_->key()); }
  std::string_view value() const { return view(at_->value()); }
  /// Returns the value of `key`. Fast if the keys mostly rise from call to call. Valid until the next call. Errors:
  /// NotFound, Corruption, IoError.
  Result<std::string_view> find(std::string_view key);
  /// Errors: Corruption, IoError.
  Status status() const;

 private:
  std::unique_ptr<leveldb::Iterator> at_;
  std::string prefix_;
};

class Store;

/// The current content of the store, readable until the store is opened again.
/// Lifetime: the store outlives it.
class StoreSnapshot {
 public:
  explicit StoreSnapshot(Store& store);
  ~StoreSnapshot();
  StoreSnapshot(const StoreSnapshot&) = delete;
  StoreSnapshot& operator=(const StoreSnapshot&) = delete;

 private:
  friend class Store;
  Store& store_;
  const std::uint64_t opened_;
  const leveldb::Snapshot* const snapshot_;
};

/// One LevelDB database. LevelDB refuses all writes after a failed one until it is opened again; `recover` opens it
/// again once there is space. After a failed sync only a restart opens it again.
class Store {
 public:
  /// Errors: Corruption, NoSpace, IoError.
  static Result<std::unique_ptr<Store>> open(Env& env, const LeveldbOptions& options);
  ~Store();

  /// Applies the whole batch or none of it. Errors: NoSpace, IoError (nothing was applied); Timeout (a sync failed: the
  /// batch may be there after a restart).
  Status write(leveldb::WriteBatch& batch, bool sync);
  /// Errors: NotFound, Corruption, IoError.
  Status get(std::string_view key, std::string& value);
  /// Starts a scan at the first key with `prefix`. `keep` leaves the blocks read in the cache. Errors: IoError;
  /// NotReady (the database was opened again since the snapshot).
  Result<Scan> scan(std::string prefix, bool keep = false, const StoreSnapshot* snapshot = nullptr);
  /// Frees the disk space of deleted and replaced values with `prefix`. Blocks until this is done.
  void compact(const std::string& prefix);
  /// Returns OK unless a sync failed.
  Status health() const;
  /// Returns true if parts of the log could not be read, so that every bucket may lack writes.
  bool lost_writes() const { return lost_writes_; }

  /// Tries to make the store writable again after a failure, at most once a second.
  void recover(MonotonicTime now);
  /// Returns true if writes are refused until recover() succeeds.
  bool is_refusing() const { return !refusal_.is_ok(); }

 private:
  Store(Env& env, const LeveldbOptions& options);
  Status open_database();
  leveldb::Options database_options() const;
  Status from(const leveldb::Status& status) const;

  Env& env_;
  const LeveldbOptions options_;
  const std::string path_;
  EnvAdapter adapter_;
  std::unique_ptr<leveldb::Logger> log_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  Status refusal_;  ///< Reason why writes are refused until recover() has opened the database again.
  Status health_;
  MonotonicTime retry_at_;
  bool lost_writes_ = false;
  std::uint64_t opened_ = 0;  ///< Number of times that the database was opened.
  friend class StoreSnapshot;
  std::unique_ptr<leveldb::DB> db_;  ///< The last member, because it uses the other members.
};

}  // namespace fjord::leveldb_store
