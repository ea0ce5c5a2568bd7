#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "background_health.h"
#include "batch_writer.h"
#include "bucket_repair.h"
#include "bucket_table.h"
#include "checkpointer.h"
#include "engine_context.h"
#include "engine_metrics.h"
#include "fjord/storage/slotfile/slotfile_provider.h"
#include "journal.h"
#include "rewrite_scheduler.h"
#include "scrubber.h"
#include "structure_editor.h"

namespace fjord::slotfile {

/// Checks the limits. Errors: InvalidArgument if a limit is out of its range.
Status check_limits(const SlotfileLimits& limits);

/// The engine of one stripe. It implements the provider contract and chooses which background work comes next; its
/// parts do the work, on one BucketTable.
///
/// Threading: confined to its executor, except the jobs that it gives to the background executor.
class Engine final : public SlotfileProvider {
 public:
  Engine(Env& env, const SlotfileOptions& options)
      : context_(env, options),
        journal_(context_),
        table_(context_, journal_),
        rewrites_(table_),
        repair_(table_, rewrites_),
        structure_(table_, rewrites_),
        checkpointer_(table_, rewrites_, structure_),
        writer_(table_, structure_, checkpointer_),
        scrubber_(table_),
        background_(options.stripe) {
    if (options.metrics != nullptr) metrics_.emplace(*options.metrics, options.stripe);
  }

  /// Opens the files of the stripe and replays its journal. Called once, before all other calls. Errors: those of
  /// Recovery.
  Status recover();

  std::vector<BucketId> list_buckets() const override { return table_.list(); }
  Status create_bucket(BucketId bucket) override;
  Status delete_bucket(BucketId bucket) override;
  Result<BucketInfo> bucket_info(BucketId bucket) const override;
  Result<ReplicaSet> replica_set(BucketId bucket) const override;
  Status set_replica_set(BucketId bucket, const ReplicaSet& set) override;
  void apply(std::span<const spi::Write> writes, std::span<spi::WriteResult> results, Durability durability) override;
  Result<spi::StoredDocument> get(BucketId bucket, const GlobalId& gid, spi::Parts parts) override;
  void prefetch(std::span<const spi::DocumentPlace> documents) override;
  Result<std::unique_ptr<spi::DocumentIterator>> iterate(BucketId bucket, const spi::IterateOptions& options) override;
  Result<std::vector<spi::EntryMeta>> list_entries(BucketId bucket) override;
  Status for_each_entry(BucketId bucket, const std::function<void(const spi::EntryMeta&)>& sink) override;
  Status for_each_newer(BucketId bucket, Timestamp after,
                        const std::function<void(const spi::EntryMeta&)>& sink) override;
  Result<std::size_t> read_entries(BucketId bucket, std::span<const GlobalId> gids, DocBlockBuilder& into,
                                   std::size_t max_bytes) override;
  Status split_bucket(BucketId bucket) override { return structure_.split_bucket(bucket); }
  Status join_buckets(BucketId parent) override { return structure_.join_buckets(parent); }
  Status forget(BucketId bucket, Timestamp removes_before, Timestamp tokens_before) override;
  Status set_forgotten(BucketId bucket, const spi::Forgotten& forgotten) override;
  Result<spi::Forgotten> forgotten(BucketId bucket) const override;
  Result<spi::RemovedEntries> count_removed(BucketId bucket, const spi::RemovedQuestion& question) override;
  spi::Maintenance maintain(MonotonicTime now) override;
  void set_short_of_space(bool is_short) override { short_of_space_ = is_short; }
  std::vector<BucketId> take_damaged() override { return table_.take_damaged(); }
  Result<bool> renew(BucketId bucket) override { return repair_.renew(bucket); }
  Status forget_lost(BucketId bucket) override { return repair_.forget_lost(bucket); }
  Status mark_repaired(BucketId bucket) override { return repair_.mark_repaired(bucket); }
  Result<bool> is_damaged(BucketId bucket) const override;
  Status health() const override { return table_.health(); }
  Status background() const override { return background_.status(); }

  SlotfileStats stats() const override;
  Status set_limits(const SlotfileLimits& limits) override;
  SlotfileLimits limits() const override { return context_.options.limits; }
  Status checkpoint() override { return checkpointer_.run(); }
  Result<unsigned> slots_of(BucketId bucket) const override;

  /// The parts that the import of the older format uses.
  struct ImportParts {
    BucketTable& table;
    BucketRepair& repair;
  };
  ImportParts import_parts() { return {table_, repair_}; }

 private:
  Result<std::uint64_t> change_forgotten(Bucket& bucket, const spi::Forgotten& forgotten);
  Status keep_forgotten(Bucket& bucket, const spi::Forgotten& before);
  void follow_settings(MonotonicTime now);

  EngineContext context_;
  Journal journal_;
  BucketTable table_;
  RewriteScheduler rewrites_;
  BucketRepair repair_;
  StructureEditor structure_;
  Checkpointer checkpointer_;
  BatchWriter writer_;
  Scrubber scrubber_;
  std::optional<EngineMetrics> metrics_;
  MonotonicTime metrics_due_;
  bool active_ = false;        ///< True if there was a write or read since the last maintain().
  MonotonicTime quiet_since_;  ///< Time of the last maintain() that found `active_` set.
  MonotonicTime begun_at_;     ///< Time at which the last background checkpoint began.
  MonotonicTime retry_at_;
  BackgroundHealth background_;
  bool short_of_space_ = false;
};

}  // namespace fjord::slotfile
