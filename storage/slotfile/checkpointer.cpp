#include "checkpointer.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fjord::slotfile {

namespace {

/// Approximate number of bytes that one step flushes, so that other work waits some milliseconds at most.
constexpr std::uint64_t kFlushStepBytes = 1 << 20;
/// Approximate maximum size of a run, so that other work waits some milliseconds at most.
constexpr std::uint64_t kRunBytes = 2 << 20;
constexpr std::size_t kSyncFilesMax = 128;

}  // namespace

bool Checkpointer::is_due() const {
  const SlotfileLimits& limits = context_.options.limits;
  return context_.stats.held_bytes > limits.held_bytes_max / 2 || journal_.bytes() > limits.journal_bytes_max / 2 ||
         table_.retired().bytes() > limits.journal_bytes_max / 2;
}

void Checkpointer::enter(Phase phase) {
  phase_ = phase;
  table_.is_flushing = phase == Phase::Flush;
}

Status Checkpointer::begin() {
  FJORD_TRY(journal_.rotate());
  segment_ = journal_.segment();
  lsn_ = journal_.last_lsn() + 1;
  flush_cursor_ = 0;
  table_.wants_checkpoint = false;
  for (const auto& [uid, bucket] : table_.by_uid()) {
    for (const auto& slot : bucket->slots) slot->to_flush = slot->held().staged.size();
  }
  enter(Phase::Flush);
  return Status::ok();
}

Status Checkpointer::run() {
  FJORD_TRY(table_.health());
  FJORD_TRY(finish_running());
  FJORD_TRY(begin());
  return finish_running();
}

Status Checkpointer::finish_running() {
  while (is_running()) {
    if (job_ != nullptr) job_->join();
    FJORD_TRY(step());
  }
  return Status::ok();
}

Status Checkpointer::step() {
  switch (phase_) {
    case Phase::None:
      return Status::ok();
    case Phase::Flush:
      return flush_some(kFlushStepBytes);
    case Phase::Sync:
      return sync_some();
    case Phase::Save:
      return finish();
  }
  return Status::ok();
}

Status Checkpointer::flush_some(std::uint64_t bytes_max) {
  // A slot that is being rewritten can be flushed only after the rewrite.
  if (rewrites_.blocks_flush()) {
    return rewrites_.step_waiting();
  }
  const std::uint64_t before = context_.stats.flushed_bytes;
  auto at = table_.by_uid().lower_bound(flush_cursor_);
  for (; at != table_.by_uid().end(); ++at) {
    Bucket& bucket = *at->second;
    flush_cursor_ = at->first;
    // If a step ends before the bucket is completely flushed, the next step continues with this bucket.
    for (const auto& slot : bucket.slots) {
      while (slot->to_flush != 0 && !slot->rewriting) {
        if (context_.stats.flushed_bytes - before >= bytes_max) return Status::ok();
        FJORD_TRY(flush_slot(bucket, *slot));
      }
    }
    FJORD_TRY_ASSIGN(const bool has_split, structure_.split_slot_of(bucket));
    if (has_split) return Status::ok();
  }
  if (at == table_.by_uid().end()) begin_sync();
  return Status::ok();
}

/// Flushes until at most `goal` bytes are held, independently of a checkpoint.
Status Checkpointer::flush_for_memory(std::uint64_t goal) {
  FJORD_TRY(flush_until(goal));
  // The remaining held entries belong to a slot that is being rewritten, so the rewrite has to finish first.
  const std::uint64_t most = context_.options.limits.held_bytes_max;
  while (rewrites_.is_active() && context_.stats.held_bytes > most) {
    const Status status = rewrites_.step_waiting();
    if (!status && (rewrites_.is_active() || !table_.health())) return status;
  }
  // A rewrite that failed is tried again later. Its slot has kept its files and can be flushed.
  return context_.stats.held_bytes > most ? flush_until(goal) : Status::ok();
}

Status Checkpointer::flush_until(std::uint64_t goal) {
  for (std::size_t seen = 0; seen <= table_.by_uid().size() && context_.stats.held_bytes > goal; ++seen) {
    auto at = table_.by_uid().upper_bound(memory_cursor_);
    if (at == table_.by_uid().end()) at = table_.by_uid().begin();
    memory_cursor_ = at->first;
    for (const auto& slot : at->second->slots) {
      while (context_.stats.held_bytes > goal && !slot->held().empty() && !slot->rewriting) {
        FJORD_TRY(flush_slot(*at->second, *slot));
      }
    }
  }
  return Status::ok();
}

Status Checkpointer::flush_slot(Bucket& bucket, Slot& slot) {
  if (slot.held().empty() || slot.rewriting) return Status::ok();
  const std::uint64_t bytes = slot.held().bytes();
  if (const Status status = slot.flush(kRunBytes, [&] { return table_.new_file(); }); !status) {
    ++context_.stats.failed_writes;
    return status.with_context(bucket.id.to_string());
  }
  ++context_.stats.flushes;
  context_.stats.flushed_bytes += bytes - slot.held().bytes();
  return Status::ok();
}

/// Evaluates the last sync job and starts the next one for some of the files that have to be synced.
Status Checkpointer::sync_some() {
  if (job_ != nullptr) {
    const Status status = std::exchange(job_, nullptr)->wait();
    if (!status) {
      table_.fail(status);
      return status;
    }
    for (std::size_t i = synced_begin_; i < synced_end_; ++i) to_sync_[i].first->set_synced_size(to_sync_[i].second);
  }
  synced_begin_ = synced_end_;
  std::vector<std::shared_ptr<RandomAccessFile>> handles;
  for (; synced_end_ < to_sync_.size() && handles.size() < kSyncFilesMax; ++synced_end_) {
    SlotFile& file = *to_sync_[synced_end_].first;
    if (file.users == 0) continue;  // The file was retired meanwhile, so it need not be synced.
    auto handle = file.file().share();
    if (!handle) {
      // Files before this one in the group are not synced either, so the whole group is synced again.
      synced_end_ = synced_begin_;
      return handle.error();
    }
    handles.push_back(std::move(*handle));
  }
  if (handles.empty()) {
    to_sync_.clear();
    return save();
  }
  job_ = BackgroundJob::start(
      context_.options.background,
      [handles = std::move(handles), &env = context_.env, directory = context_.options.directory]() -> Status {
        for (const auto& handle : handles) FJORD_TRY(handle->sync());
        return env.sync_directory(directory);
      });
  return Status::ok();
}

void Checkpointer::begin_sync() {
  std::set<std::uint32_t> seen;
  to_sync_.clear();
  for (const auto& [uid, bucket] : table_.by_uid()) {
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) {
        if (file->is_dirty() && seen.insert(file->number()).second) to_sync_.emplace_back(file.file, file->size());
      }
    }
  }
  synced_begin_ = synced_end_ = 0;
  enter(Phase::Sync);
}

Status Checkpointer::save() {
  Catalog catalog = table_.catalog();
  catalog.lsn = journal_.last_lsn();
  catalog.first_segment = segment_;
  table_.retired().begin_save();
  journal_ticket_ = journal_.begin_sync();
  enter(Phase::Save);
  // The job syncs the journal first, because a catalog must not be ahead of the journal.
  job_ = BackgroundJob::start(context_.options.background,
                              [encoded = encode_catalog(catalog, context_.options.stripe, context_.options.stripes),
                               files = journal_ticket_.files, &env = context_.env,
                               directory = context_.options.directory, stripe = context_.options.stripe]() -> Status {
                                for (const auto& file : files) FJORD_TRY(file->sync());
                                return save_catalog(env, directory, stripe, encoded);
                              });
  return Status::ok();
}

Status Checkpointer::finish() {
  const Status status = std::exchange(job_, nullptr)->wait();
  enter(Phase::None);
  if (!status) {
    if (status.code() != StatusCode::NoSpace) table_.fail(status);
    return status;
  }
  journal_.end_sync(std::exchange(journal_ticket_, {}));
  journal_.retire(segment_);
  // The journal begins after these splits and joins, so it has no writes for the replaced buckets.
  table_.forget_successors_before(lsn_);
  table_.retired().end_save();
  ++context_.stats.checkpoints;
  return Status::ok();
}

}  // namespace fjord::slotfile
