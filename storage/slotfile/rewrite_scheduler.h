#pragma once

#include <cstdint>
#include <memory>

#include "background_job.h"
#include "bucket_table.h"
#include "slot_rewriter.h"

namespace fjord::slotfile {

/// Rewrites slots with files that do not verify, with much dead space, many files or dropped entries, one slot at a
/// time.
///
/// Threading: confined to the engine's executor; the new file is synced on the background executor.
class RewriteScheduler {
 public:
  explicit RewriteScheduler(BucketTable& table) : table_(table), context_(table.context()) {}
  ~RewriteScheduler() { abandon(); }

  /// Returns true if a slot is being rewritten.
  bool is_active() const { return rewrite_ != nullptr; }
  /// Returns true while the new file is being synced.
  bool is_waiting() const { return job_ != nullptr && !job_->is_done(); }
  /// Returns true if a slot with entries to flush is being rewritten.
  bool blocks_flush() const { return rewrite_ != nullptr && rewrite_->slot().to_flush != 0; }
  /// Begins to rewrite a suspect slot: one of a bucket that is being renewed, or one that has lost nothing. Slots whose
  /// last rewrite failed wait for their time. Returns false if there is none, or a rewrite is running.
  bool pick_suspect();
  /// Begins to rewrite a suspect slot of this bucket, which is being renewed, whether or not its time has come.
  /// Requires that there is one, and that no rewrite is running. Errors: IoError.
  Status begin_renewal(Bucket& bucket);
  /// Begins to rewrite a slot that is worth it. If `busy`, takes only a slot that cannot wait. Returns false if there
  /// is none.
  bool pick(bool busy);
  /// Copies about 1 MiB, or finishes the rewrite. Errors: IoError, NoSpace; after a failed sync the engine is closed.
  Status step();
  /// Like step(), but waits for a sync that is running.
  Status step_waiting() {
    if (job_ != nullptr) job_->join();
    return step();
  }
  /// Ends the rewrite; the slot stays as it is.
  void abandon();
  void abandon_of(std::uint64_t uid) {
    if (rewrite_ != nullptr && uid_ == uid) abandon();
  }

 private:
  bool needs_rewrite(const Slot& slot, bool idle) const;
  void begin(Bucket& bucket, Slot& slot);
  bool can_begin(Bucket& bucket, Slot& slot);
  void fail(const Status& status);
  Status stop_with_losses();
  Status finish();

  BucketTable& table_;
  EngineContext& context_;
  std::unique_ptr<SlotRewriter> rewrite_;
  std::uint64_t uid_ = 0;  ///< Uid of the bucket whose slot is rewritten.
  std::shared_ptr<BackgroundJob> job_;
  MonotonicTime suspects_at_;  ///< At this time a suspect slot that was put off may be due.
};

}  // namespace fjord::slotfile
