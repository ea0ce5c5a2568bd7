#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "catalog.h"
#include "engine_context.h"
#include "journal.h"
#include "retired_files.h"
#include "slot.h"

namespace fjord::slotfile {

struct Bucket {
  BucketId id;
  std::uint64_t uid = 0;
  ReplicaSet replicas;
  spi::Forgotten forgotten;
  bool damaged = false;                      ///< Damage was found, and the bucket was not marked as repaired since.
  bool damage_saved = false;                 ///< True if a restart would know of the damage.
  bool renewing = false;                     ///< Suspect slots are rewritten although the bucket is damaged.
  Status renewal_problem;                    ///< Why the last attempt to rewrite a slot has failed.
  std::vector<std::unique_ptr<Slot>> slots;  ///< Sorted by first cell; together they cover all cells.
  std::array<Slot*, kCells> by_cell{};

  Slot& slot_for(const GlobalId& gid) const { return *by_cell[cell_of(gid)]; }
  void index_cells();
  BucketInfo info() const;
  unsigned depth() const;
  bool is_damaged() const;
  bool is_suspect() const;
  /// Returns true if the files of the slot must stay as they are, because they may hold what no other replica has. A
  /// renewal, which needs an intact replica, ends this.
  bool waits_for_renewal(const Slot& slot) const;
};

/// The buckets of one stripe, and the state that the parts of the engine share: the journal, the loaded indexes, the
/// numbers of uids and files, the files to be removed, and whether the stripe still writes.
///
/// Threading: confined to the engine's executor. Lifetime: the context and the journal outlive it.
class BucketTable {
 public:
  BucketTable(EngineContext& context, Journal& journal) : context_(context), journal_(journal) {}

  EngineContext& context() { return context_; }
  Journal& journal() { return journal_; }
  LoadedSlots& loaded() { return loaded_; }
  RetiredFiles& retired() { return retired_; }
  const RetiredFiles& retired() const { return retired_; }

  // --- Buckets

  Bucket* find(BucketId bucket) const;
  const std::map<std::uint64_t, Bucket*>& by_uid() const { return by_uid_; }
  /// Returns the ids of all buckets, sorted.
  std::vector<BucketId> list() const;
  bool is_ours(BucketId bucket) const {
    return (bucket.raw() & (context_.options.stripes - 1)) == context_.options.stripe;
  }
  std::uint64_t take_uid() { return next_uid_++; }
  /// Adds a bucket; it replaces a bucket of the same id.
  Bucket* adopt(std::unique_ptr<Bucket> bucket);
  /// Removes a bucket from memory and retires the files that only it referred to.
  void drop(Bucket& bucket);

  // --- Edits

  /// Returns an edit that stores these buckets.
  Edit edit_of(std::span<Bucket* const> buckets) const;
  /// Appends the edit to the journal, and syncs the journal if `durable` or the options say so. Errors: those of
  /// health() and of the journal.
  Status commit(Edit edit, bool durable = false);
  /// Returns the whole structure as a catalog, without its positions in the journal.
  Catalog catalog() const;
  /// Takes the numbers and successors from a catalog, but not its buckets.
  void restore(const Catalog& catalog);

  // --- Successors: writes in the journal name the bucket that existed when they were written

  void add_successors(const Successors& successors) { successors_[successors.uid] = successors; }
  /// Forgets the splits and joins before `lsn`, when the journal has no older writes.
  void forget_successors_before(std::uint64_t lsn) {
    std::erase_if(successors_, [&](const auto& successors) { return successors.second.lsn < lsn; });
  }
  /// Returns the bucket with this uid, or that of its successors which contains `gid`. Null if the bucket was deleted.
  Bucket* find_successor(std::uint64_t uid, const GlobalId& gid) const;

  // --- Slots and files

  /// Calls `f(slot, gid)` for each of the documents (with members `bucket` and `gid`) whose slot is loaded.
  template <typename Documents, typename F>
  void for_each_loaded_slot(const Documents& documents, F f) const {
    const Bucket* bucket = nullptr;
    for (const auto& document : documents) {
      if (bucket == nullptr || bucket->id != document.bucket) bucket = find(document.bucket);
      if (bucket == nullptr) continue;
      Slot& slot = bucket->slot_for(document.gid);
      if (slot.is_loaded()) f(slot, document.gid);
    }
  }
  /// Loads the slot's index, and unloads others if the indexes take too much memory. In a bucket that is damaged
  /// already, entries in a file that cannot be read count as lost. Errors: IoError.
  Status load(Slot& slot);
  /// Unloads the indexes used least recently until the loaded ones are within their memory limit.
  void evict_indexes();
  std::shared_ptr<SlotFile> new_file();

  // --- Health

  /// Notes that the bucket is damaged, so that take_damaged() returns it. All its slots become suspect, because damage
  /// seldom comes alone.
  void note_damage(Bucket& bucket);
  /// Like note_damage(), for damage that no slot knows of.
  void report_found(Bucket& bucket);
  /// Reports a bucket that was opened as damaged.
  void report_damaged(BucketId bucket) {
    damaged_.push_back(bucket);
    damage_unsaved_ = true;
  }
  /// Drops the report of damage that was repaired before anybody took it.
  void drop_report(BucketId bucket) { std::erase(damaged_, bucket); }
  /// Marks the bucket as damaged, whatever its slots say.
  void set_damaged(Bucket& bucket);
  /// Makes newly found damage durable. Errors: those of commit(); it is tried again by the next call.
  Status save_damage();
  /// Returns true if damage was found since the last call.
  bool take_damage_found() { return std::exchange(damage_found_, false); }
  std::vector<BucketId> take_damaged() { return std::exchange(damaged_, {}); }
  /// Ends all writing until the next start, after a failed sync.
  void fail(const Status& status);
  Status health() const { return health_ ? journal_.health() : health_; }

  /// True while a checkpoint flushes: slots that are made meanwhile are flushed by it too.
  bool is_flushing = false;
  /// True if a checkpoint should begin in the next quiet moment, however little it has to do.
  bool wants_checkpoint = false;

 private:
  BucketRecord record_of(const Bucket& bucket) const;

  EngineContext& context_;
  Journal& journal_;
  LoadedSlots loaded_;
  std::unordered_map<BucketId, std::unique_ptr<Bucket>> buckets_;
  std::map<std::uint64_t, Bucket*> by_uid_;
  std::map<std::uint64_t, Successors> successors_;
  std::uint64_t next_uid_ = 1;
  std::uint32_t next_file_ = 0;
  RetiredFiles retired_;
  std::vector<BucketId> damaged_;
  bool damage_found_ = false;
  bool damage_unsaved_ = false;  ///< True if a bucket may be damaged and not `damage_saved`.
  Status health_;
};

}  // namespace fjord::slotfile
