#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "leveldb_format.h"
#include "leveldb_store.h"

namespace fjord::leveldb_store {

struct Bucket {
  std::uint64_t incarnation = 0;  ///< Number that distinguishes a bucket from a deleted one with the same id.
  CatalogEntry catalog;
  BucketInfo info;
  /// Bytes deleted or replaced since the bucket's range was compacted; LevelDB still has them on disk.
  std::uint64_t dead_bytes = 0;
  bool has_bad_blocks = false;  ///< The running renewal has met metadata that cannot be read.
  /// While the bucket is damaged: all entries were read since damage was last found in it.
  bool renewed = false;
  std::optional<GlobalId> renewed_to = std::nullopt;  ///< Id of the last entry that the running renewal has read.
};

/// The provider. Descriptions of buckets are in memory; everything else is read from LevelDB.
class Engine final : public spi::PersistenceProvider {
 public:
  Engine(std::unique_ptr<Store> store, const LeveldbOptions& options) : store_(std::move(store)), options_(options) {}
  /// Reads the catalog, and the heads of all entries to compute the bucket infos.
  Status load();

  std::vector<BucketId> list_buckets() const override;
  Status create_bucket(BucketId bucket) override;
  Status delete_bucket(BucketId bucket) override;
  Result<BucketInfo> bucket_info(BucketId bucket) const override;
  Result<ReplicaSet> replica_set(BucketId bucket) const override;
  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override;
  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results,
             spi::Durability durability) override;
  Result<spi::StoredDocument> get(BucketId bucket, const GlobalId& gid, spi::Parts parts) override;
  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override;
  Result<std::vector<spi::EntryMeta>> list_entries(BucketId bucket) override;
  Status for_each_entry(BucketId bucket, const std::function<void(const spi::EntryMeta&)>& sink) override;
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override;
  Status split_bucket(BucketId bucket) override;
  Status join_buckets(BucketId parent) override;
  Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) override;
  Status set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) override;
  Result<spi::Forgotten> forgotten(BucketId bucket) const override;
  spi::Maintenance maintain(MonotonicTime now) override;
  std::vector<BucketId> take_damaged() override { return std::exchange(damaged_, {}); }
  Result<bool> renew(BucketId bucket) override;
  /// Does nothing: what was lost is deleted, so an older version is accepted in its place.
  Status forget_lost(BucketId bucket) override;
  Status mark_repaired(BucketId bucket) override;
  Result<bool> is_damaged(BucketId bucket) const override;
  Status health() const override { return store_->health(); }

  // Gives iterators and moves of buckets access to the store.
  Store& store() { return *store_; }
  Bucket* find(BucketId bucket);
  const Bucket* find(BucketId bucket) const { return const_cast<Engine*>(this)->find(bucket); }
  /// Handles damage among the heads of a bucket's entries: counts the remaining entries again.
  void note_damage(BucketId id, Bucket& bucket);
  /// Removes an entry whose parts cannot be read, so that the bucket's info shows that it is missing.
  void lose_entry(BucketId id, Bucket& bucket, const GlobalId& gid, const EntryHead& head);

 private:
  friend class BucketMove;
  struct Batch;
  struct Counted {
    BucketInfo info;
    bool corrupt = false;
  };

  bool syncs(spi::Durability durability) const {
    return durability == spi::Durability::Sync || options_.durability == spi::Durability::Sync;
  }
  /// Writes a change of the catalog. It is durable with the next sync at the latest.
  Status commit(leveldb::WriteBatch& batch, bool sync = false) {
    return store_->write(batch, sync || syncs(options_.change_durability));
  }
  Status put_catalog(BucketId id, const CatalogEntry& catalog, bool sync = false);
  Status load_catalog();
  Status load_garbage();
  Status load_infos();
  Result<Counted> count_entries(std::uint64_t uid);
  void stage(const spi::Write& write, spi::WriteResult& result, Batch& batch);
  Result<std::optional<EntryHead>> head_of(BucketId id, Bucket& bucket, const GlobalId& gid);
  /// Reads a part, which must have the given length. Errors: Corruption, IoError.
  Status read_part(std::uint64_t uid, Kind kind, const GlobalId& gid, std::size_t length, std::string& value);
  /// What a step of a renewal has found.
  struct Bad {
    leveldb::WriteBatch deletions;
    std::uint64_t entries = 0;
    bool has_blocks = false;       ///< True if metadata of unknown entries cannot be read.
    std::optional<GlobalId> last;  ///< Id of the last entry that was read.
  };
  /// Copies what can be read of the bucket to keys of a new uid.
  Status move_off_bad_blocks(BucketId id);
  /// Reads the next entries of a bucket that is being renewed. Returns true if it was the last ones.
  Result<bool> read_some(const Bucket& bucket, Bad& bad);
  Status add_entry(BucketId id, Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into);
  void report_damage(BucketId id);
  /// Deletes some garbage. Returns true if garbage is left.
  Result<bool> collect_garbage();
  struct Dropped {
    leveldb::WriteBatch changes;
    std::uint64_t checksum = 0;
    std::uint64_t bytes = 0;
    BucketInfo left;
  };
  /// Counts the entries that the bucket loses if everything that `forgotten` covers is dropped.
  Result<Dropped> find_forgotten(Bucket& bucket, const spi::Forgotten& forgotten);
  Status drop_forgotten(BucketId id, Bucket& bucket, const spi::Forgotten& forgotten, Dropped dropped);
  bool compact_some();

  std::unique_ptr<Store> store_;
  const LeveldbOptions options_;
  std::map<BucketId, Bucket> buckets_;
  std::set<std::uint64_t> garbage_;  ///< Uids whose entries are to be deleted.
  std::uint64_t next_uid_ = 1;
  std::uint64_t incarnations_ = 0;
  std::vector<BucketId> damaged_;
  std::string got_header_;  ///< Header returned by the latest get().
  std::string got_body_;
  std::string garbage_cursor_;
  bool garbage_is_bad_ = false;      ///< True if keys of the uid that is being deleted cannot be read.
  std::uint64_t garbage_bytes_ = 0;  ///< Bytes deleted so far of the uid that is being deleted.
  /// Uids whose entries are deleted, but still take space on disk.
  std::vector<std::uint64_t> emptied_;
};

void add_to(BucketInfo& info, const GlobalId& gid, const EntryHead& head);
/// Subtracts an entry from `info`. Does not change max_timestamp_us, because other entries may have that timestamp.
void take_from(BucketInfo& info, const GlobalId& gid, const EntryHead& head);
void delete_entry(leveldb::WriteBatch& batch, std::uint64_t uid, const GlobalId& gid, const EntryHead& head);
Status no_bucket(BucketId bucket);
Status unreadable(BucketId bucket, const GlobalId& gid);

std::unique_ptr<spi::DocumentIterator> make_iterator(Engine& engine, BucketId id, const Bucket& bucket,
                                                     const spi::IterateOptions& options);

}  // namespace fjord::leveldb_store
