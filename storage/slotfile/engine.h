#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "background_job.h"
#include "catalog.h"
#include "engine_context.h"
#include "engine_metrics.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "journal.h"
#include "slot.h"
#include "slot_rewriter.h"

namespace fjord::slotfile {

struct Bucket {
  BucketId id;
  std::uint64_t uid = 0;
  ReplicaSet replicas;
  spi::Forgotten forgotten;
  bool damaged = false;                      ///< Damage known from an earlier process.
  std::vector<std::unique_ptr<Slot>> slots;  ///< Sorted by first cell; together they cover all cells.
  std::array<Slot*, kCells> by_cell{};

  Slot& slot_for(const GlobalId& gid) const { return *by_cell[cell_of(gid)]; }
  void index_cells();
  BucketInfo info() const;
  unsigned depth() const;
  bool is_damaged() const;
};

class SlotfileIterator;

/// The engine of one stripe. Its code is in several files: engine.cpp (the contract), engine_recovery.cpp (opening),
/// engine_checkpoint.cpp (background work), engine_structure.cpp (splits and joins).
///
/// Threading: confined to its executor, except the jobs that it gives to the background executor.
class Engine final : public SlotfileProvider {
 public:
  Engine(Env& env, const SlotfileOptions& options) : context_(env, options), journal_(context_) {
    if (options.metrics != nullptr) metrics_.emplace(*options.metrics, options.stripe);
  }
  ~Engine() override;

  Status open_all();

  std::vector<BucketId> list_buckets() const override;
  Status create_bucket(BucketId bucket) override;
  Status delete_bucket(BucketId bucket) override;
  Result<BucketInfo> bucket_info(BucketId bucket) const override;
  Result<ReplicaSet> replica_set(BucketId bucket) const override;
  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override;
  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, Durability durability) override;
  Result<spi::StoredDocument> get(BucketId bucket, const GlobalId& gid, spi::Parts parts) override;
  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override;
  Result<std::vector<spi::EntryMeta>> list_entries(BucketId bucket) override;
  Status for_each_entry(BucketId bucket, const std::function<void(const spi::EntryMeta&)>& sink) override;
  Status for_each_newer(BucketId bucket, Timestamp after,
                        const std::function<void(const spi::EntryMeta&)>& sink) override;
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override;
  Status split_bucket(BucketId bucket) override;
  Status join_buckets(BucketId parent) override;
  Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) override;
  Status set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) override;
  Result<spi::Forgotten> forgotten(BucketId bucket) const override;
  Result<spi::RemovedEntries> count_removed(BucketId bucket, const spi::RemovedQuestion& question) override;
  spi::Maintenance maintain(MonotonicTime now) override;
  void set_short_of_space(bool is_short) override { short_of_space_ = is_short; }
  std::vector<BucketId> take_damaged() override;
  Status mark_repaired(BucketId bucket) override;
  Result<bool> is_damaged(BucketId bucket) const override;
  Status health() const override;

  SlotfileStats stats() const override;
  Status set_limits(const SlotfileLimits& limits) override;
  SlotfileLimits limits() const override { return context_.options.limits; }
  Status checkpoint() override;
  Result<unsigned> slots_of(BucketId bucket) const override;

  // For iterators.
  EngineContext& context() { return context_; }
  Bucket* find(BucketId bucket) const;
  /// Loads the slot's index, and unloads others if the indexes take too much memory. Errors: IoError.
  Status load(Slot& slot);
  /// Notes that the bucket is damaged, so that take_damaged() returns it.
  void note_damage(Bucket& bucket);

 private:
  struct StagedWrite {
    Slot::Undo undo;
    std::uint64_t uid;
    std::uint32_t result;
    MetaEntry entry;
  };
  enum class Phase { None, Flush, Sync, Save };

  /// Measurements of the batch that is being written, if its puts are timed.
  struct Sample {
    explicit Sample(const Clock* clock) : whole(clock) {}
    struct Put {
      std::uint64_t entries;
      std::uint64_t search_us;
    };
    Stopwatch whole;
    std::vector<Put> puts;
  };

  // engine.cpp
  bool is_ours(BucketId bucket) const {
    return (bucket.raw() & (context_.options.stripes - 1)) == context_.options.stripe;
  }
  /// Like load(), for an operation on one document: counts the lookup and the time that it waits.
  Status load_for_operation(Slot& slot);
  void write_batch(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, bool sync);
  void stage_all(std::span<const spi::Write> writes, std::span<spi::WriteResult> results);
  Status find_place(Slot& slot, const GlobalId& gid);
  void count_sample();
  Status write_journal(bool sync);
  void take_back_all(std::span<spi::WriteResult> results, const Status& why);
  Status make_place_for_writes(std::span<const spi::Write> writes);
  void evict_indexes();
  Status add_entry(Bucket& bucket, const GlobalId& gid, DocBlockBuilder& into);
  Result<std::uint64_t> change_forgotten(Bucket& bucket, const spi::Forgotten& forgotten);
  Status keep_forgotten(Bucket& bucket, const spi::Forgotten& before);

  // engine_recovery.cpp
  Status replay_edits(LoadedCatalog& loaded);
  Status build(const Catalog& catalog);
  Status replay_writes(std::uint64_t first_segment, const std::map<std::uint64_t, Heirs>& heirs);
  Status replay_write_record(const Journal::Record& record);
  Bucket* find_heir(std::uint64_t uid, const GlobalId& gid) const;
  Status remove_leftovers();

  // engine_checkpoint.cpp
  bool wants_checkpoint() const;
  bool gives_space_back(MonotonicTime now) const;
  Status begin_checkpoint();
  Status step_checkpoint();
  Status flush_some(std::uint64_t bytes_max);
  Status flush_slot(Bucket& bucket, Slot& slot);
  Status flush_for_memory(std::uint64_t goal);
  void begin_sync();
  Status sync_some();
  Status save();
  Status finish_checkpoint();
  Status step_rewrite();
  Status finish_rewrite();
  void abandon_rewrite() {
    if (rewrite_job_ != nullptr) rewrite_job_->cancel();
    rewrite_job_.reset();
    rewrite_.reset();
  }
  bool pick_rewrite(bool busy);
  bool needs_rewrite(const Slot& slot, bool idle) const;
  bool join_some_slots();
  bool scrub_some(MonotonicTime now);
  void fail(const Status& status);
  std::shared_ptr<SlotFile> new_file();

  // engine_structure.cpp
  BucketRecord record_of(const Bucket& bucket) const;
  Status commit(Edit edit);
  Edit edit_of(std::span<Bucket* const> buckets) const;
  bool wants_split(const Bucket& bucket, const Slot& slot) const;
  Status split_slot(Bucket& bucket, const Slot& slot);
  bool split_some_slot();
  Status prepare(Bucket& bucket, unsigned first_cell, unsigned end_cell);
  std::unique_ptr<Slot> combine(std::span<Bucket* const> sources, BucketId id, unsigned first_cell, unsigned depth,
                                const spi::Forgotten& forgotten);
  std::unique_ptr<Bucket> combine_all(std::span<Bucket* const> sources, BucketId id, unsigned depth,
                                      const ReplicaSet& replicas);
  Status replace_slots(Bucket& bucket, unsigned first_cell, unsigned end_cell, unsigned depth);
  Status replace_buckets(std::span<Bucket* const> sources, std::span<const BucketId> targets);
  Bucket* adopt(std::unique_ptr<Bucket> bucket);
  void drop(Bucket& bucket);
  void retire_files(std::span<const std::shared_ptr<SlotFile>> files);

  void follow_settings(MonotonicTime now);

  EngineContext context_;
  std::optional<EngineMetrics> metrics_;
  MonotonicTime metrics_due_;
  Journal journal_;
  LoadedSlots loaded_;
  std::unordered_map<BucketId, std::unique_ptr<Bucket>> buckets_;
  std::map<std::uint64_t, Bucket*> by_uid_;
  std::map<std::uint64_t, Heirs> heirs_;
  std::uint64_t next_uid_ = 1;
  std::uint32_t next_file_ = 0;
  Status health_;
  std::vector<BucketId> damaged_;
  /// Uids of buckets in which a slot may have become too large.
  std::set<std::uint64_t> overfull_;

  // State of the batch that is being written.
  std::vector<StagedWrite> staged_;
  std::optional<Sample> sample_;
  unsigned batches_ = 0;
  std::string journal_meta_;
  std::vector<std::string_view> journal_parts_;

  // State of the checkpoint that is running.
  Phase phase_ = Phase::None;
  std::uint64_t checkpoint_segment_ = 0;
  std::uint64_t checkpoint_lsn_ = 0;
  std::uint64_t flush_cursor_ = 0;  ///< Uid of the bucket to flush next.
  std::uint64_t memory_cursor_ = 0;
  std::vector<std::pair<std::shared_ptr<SlotFile>, std::uint64_t>> to_sync_;
  /// Range in to_sync_ of the files that the current job syncs: [synced_begin_, synced_end_).
  std::size_t synced_begin_ = 0;
  std::size_t synced_end_ = 0;
  Journal::SyncTicket journal_ticket_;
  std::shared_ptr<BackgroundJob> job_;
  MonotonicTime retry_at_;
  /// Files that no slot refers to; removed once that is durable.
  std::vector<std::shared_ptr<SlotFile>> retired_;
  /// Files that no slot refers to, according to the catalog that is being saved.
  std::vector<std::shared_ptr<SlotFile>> retired_before_;
  std::uint64_t retired_bytes_ = 0;

  std::unique_ptr<SlotRewriter> rewrite_;
  std::uint64_t rewrite_uid_ = 0;
  std::shared_ptr<BackgroundJob> rewrite_job_;
  bool active_ = false;        ///< True if there was a write or read since the last maintain().
  MonotonicTime quiet_since_;  ///< Time of the last maintain() that found `active_` set.
  MonotonicTime begun_at_;     ///< Time at which the last background checkpoint began.
  bool short_of_space_ = false;

  std::unique_ptr<spi::DocumentIterator> scrub_;
  std::uint64_t scrub_cursor_ = 0;
  MonotonicTime scrub_next_;
};

}  // namespace fjord::slotfile
