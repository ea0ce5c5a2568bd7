#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "background_job.h"
#include "bucket_table.h"
#include "journal.h"
#include "rewrite_scheduler.h"
#include "structure_editor.h"

namespace fjord::slotfile {

/// Moves the content of the journal to slotfiles, step by step, so that the journal can be shortened: held entries are
/// flushed, their files synced, and a catalog is saved.
///
/// Threading: confined to the engine's executor; syncs and the catalog's file are written on the background executor.
class Checkpointer {
 public:
  Checkpointer(BucketTable& table, RewriteScheduler& rewrites, StructureEditor& structure)
      : table_(table),
        context_(table.context()),
        journal_(table.journal()),
        rewrites_(rewrites),
        structure_(structure) {}
  ~Checkpointer() {
    if (job_ != nullptr) job_->cancel();
  }

  bool is_running() const { return phase_ != Phase::None; }
  bool is_flushing() const { return phase_ == Phase::Flush; }
  /// Returns true while a background job runs.
  bool is_waiting() const { return job_ != nullptr && !job_->is_done(); }
  /// Returns true if held memory, the journal or unused files are large enough for a checkpoint.
  bool is_due() const;

  Status begin();
  /// Executes a part of the running checkpoint, about 1 MiB. Errors: IoError, NoSpace; after a failed sync the engine
  /// is closed.
  Status step();
  /// Executes a complete checkpoint in this call.
  Status run();
  /// Flushes until at most `goal` bytes are held, independently of a checkpoint.
  Status flush_for_memory(std::uint64_t goal);
  Status flush_slot(Bucket& bucket, Slot& slot);

 private:
  enum class Phase { None, Flush, Sync, Save };

  void enter(Phase phase);
  Status finish_running();
  Status flush_until(std::uint64_t goal);
  Status flush_some(std::uint64_t bytes_max);
  void begin_sync();
  Status sync_some();
  Status save();
  Status finish();

  BucketTable& table_;
  EngineContext& context_;
  Journal& journal_;
  RewriteScheduler& rewrites_;
  StructureEditor& structure_;

  Phase phase_ = Phase::None;
  std::uint64_t segment_ = 0;  ///< First segment of the journal that is needed after the checkpoint.
  std::uint64_t lsn_ = 0;
  std::uint64_t flush_cursor_ = 0;  ///< Uid of the bucket to flush next.
  std::uint64_t memory_cursor_ = 0;
  std::vector<std::pair<std::shared_ptr<SlotFile>, std::uint64_t>> to_sync_;
  /// Range in to_sync_ of the files that the current job syncs: [synced_begin_, synced_end_).
  std::size_t synced_begin_ = 0;
  std::size_t synced_end_ = 0;
  Journal::SyncTicket journal_ticket_;
  std::shared_ptr<BackgroundJob> job_;
};

}  // namespace fjord::slotfile
