#include <algorithm>
#include <set>
#include <utility>

#include "engine.h"
#include "fjord/common/log.h"
#include "slotfile_iterator.h"

namespace fjord::slotfile {

namespace {

/// Bytes that a step of background work moves approximately, so that other work waits some milliseconds at most.
constexpr std::uint64_t kStepBytes = 1 << 20;
/// Approximate maximum bytes of a run, for the same reason.
constexpr std::uint64_t kRunBytes = 2 << 20;
/// Fewer dead bytes in a file than these are ignored.
constexpr std::uint64_t kDeadBytesLeast = kFileHeaderBytes + 8 * kRunFrameBytes;
/// A slot is rewritten if more than one in this number of its entries is a dropped remove entry.
constexpr std::uint64_t kForgottenPart = 4;
constexpr std::uint64_t kForgottenPartIdle = 16;
constexpr std::size_t kSyncFilesMax = 128;
constexpr std::size_t kFilesOfSlotMax = 8;
constexpr Duration kIdle = std::chrono::seconds(1);
/// Time without writes and reads after which the content of the journal is written to slotfiles, if it is large enough.
constexpr Duration kQuiet = std::chrono::milliseconds(50);
constexpr std::uint64_t kWorthACheckpoint = 1 << 20;
/// On a full disk checkpoints do not wait for a quiet moment and have no minimum size, but they keep this distance.
constexpr Duration kBetweenUrgentCheckpoints = std::chrono::seconds(1);
constexpr Duration kBetweenMetrics = std::chrono::seconds(2);
constexpr Duration kWhileSyncing = std::chrono::milliseconds(2);
constexpr Duration kAfterFailure = std::chrono::seconds(1);

}  // namespace

void Engine::fail(const Status& status) {
  if (!health_) return;
  health_ = status.with_context("a sync failed; closed until the next start");
  log::error("slotfile", "{}", health_.to_string());
}

std::shared_ptr<SlotFile> Engine::new_file() {
  const std::uint32_t number = next_file_ * context_.options.stripes + context_.options.stripe;
  ++next_file_;
  return std::make_shared<SlotFile>(context_, number, 0);
}

spi::Maintenance Engine::maintain(MonotonicTime now) {
  follow_settings(now);
  if (!health()) return {.more = false, .next_in = kIdle};
  const bool busy = std::exchange(active_, false);
  if (busy) quiet_since_ = now;
  const bool quiet = now >= quiet_since_ + kQuiet;
  const bool leftover = journal_.bytes() > kWorthACheckpoint || retired_bytes_ > kWorthACheckpoint;
  if (now < retry_at_) return {.more = false, .next_in = retry_at_ - now};
  const bool waits = (job_ != nullptr && !job_->is_done()) || (rewrite_job_ != nullptr && !rewrite_job_->is_done());
  if (split_some_slot()) return {.more = true, .next_in = kIdle};
  Status status;
  bool more = true;
  if (phase_ != Phase::None && (job_ == nullptr || job_->is_done()) && !(phase_ == Phase::Flush && rewrite_)) {
    status = step_checkpoint();
  } else if (rewrite_ != nullptr && (rewrite_job_ == nullptr || rewrite_job_->is_done())) {
    status = step_rewrite();
  } else if (waits) {
    return {.more = false, .next_in = kWhileSyncing};
  } else if (phase_ == Phase::None && (wants_checkpoint() || (quiet && leftover) || gives_space_back(now))) {
    begun_at_ = now;
    status = begin_checkpoint();
  } else {
    more = pick_rewrite(!quiet && !short_of_space_) || join_some_slots() || scrub_some(now);
    if (!more && !quiet && leftover) return {.more = false, .next_in = kQuiet};
  }
  if (!status) {
    log::warning("slotfile", "background work waits: {}", status.to_string());
    retry_at_ = now + kAfterFailure;
    return {.more = false, .next_in = kAfterFailure};
  }
  return {.more = more, .next_in = kIdle};
}

/// Applies changed limits, and reports the statistics at intervals.
void Engine::follow_settings(MonotonicTime now) {
  if (context_.options.tunables != nullptr) {
    const SlotfileLimits limits = context_.options.tunables->of_stripe(context_.options.stripes);
    if (limits != context_.options.limits) {
      if (const Status status = set_limits(limits); !status) log::warning("slotfile", "{}", status.to_string());
    }
  }
  if (!metrics_ || now < metrics_due_) return;
  metrics_due_ = now + kBetweenMetrics;
  metrics_->update(stats());
}

bool Engine::wants_checkpoint() const {
  const SlotfileLimits& limits = context_.options.limits;
  return context_.stats.held_bytes > limits.held_bytes_max / 2 || journal_.bytes() > limits.journal_bytes_max / 2 ||
         retired_bytes_ > limits.journal_bytes_max / 2;
}

/// True if the disk is so full that a checkpoint cannot wait. A checkpoint removes unused files and writes removes to
/// slotfiles; slots with held entries cannot be rewritten.
bool Engine::gives_space_back(MonotonicTime now) const {
  return short_of_space_ && now >= begun_at_ + kBetweenUrgentCheckpoints &&
         (context_.stats.held_bytes > 0 || retired_bytes_ > 0);
}

Status Engine::begin_checkpoint() {
  FJORD_TRY(journal_.rotate());
  checkpoint_segment_ = journal_.segment();
  checkpoint_lsn_ = journal_.last_lsn() + 1;
  flush_cursor_ = 0;
  for (const auto& [uid, bucket] : by_uid_) {
    for (const auto& slot : bucket->slots) slot->to_flush = slot->held().staged.size();
  }
  phase_ = Phase::Flush;
  return Status::ok();
}

/// Runs a complete checkpoint in this call.
Status Engine::checkpoint() {
  FJORD_TRY(health());
  while (phase_ != Phase::None) {
    if (job_ != nullptr) job_->join();
    FJORD_TRY(step_checkpoint());
  }
  FJORD_TRY(begin_checkpoint());
  while (phase_ != Phase::None) {
    if (job_ != nullptr) job_->join();
    FJORD_TRY(step_checkpoint());
  }
  return Status::ok();
}

Status Engine::step_checkpoint() {
  switch (phase_) {
    case Phase::None:
      return Status::ok();
    case Phase::Flush:
      return flush_some(kStepBytes);
    case Phase::Sync:
      return sync_some();
    case Phase::Save:
      return finish_checkpoint();
  }
  return Status::ok();
}

Status Engine::flush_some(std::uint64_t bytes_max) {
  // A slot that is being rewritten can be flushed only after the rewrite.
  if (rewrite_ != nullptr && rewrite_->slot().to_flush != 0) {
    if (rewrite_job_ != nullptr) rewrite_job_->join();
    return step_rewrite();
  }
  const std::uint64_t before = context_.stats.flushed_bytes;
  auto at = by_uid_.lower_bound(flush_cursor_);
  for (; at != by_uid_.end(); ++at) {
    Bucket& bucket = *at->second;
    flush_cursor_ = at->first;
    // A step that ends before the bucket is flushed continues with it.
    for (const auto& slot : bucket.slots) {
      while (slot->to_flush != 0 && !slot->rewriting) {
        if (context_.stats.flushed_bytes - before >= bytes_max) return Status::ok();
        FJORD_TRY(flush_slot(bucket, *slot));
      }
    }
    const auto full = std::find_if(bucket.slots.begin(), bucket.slots.end(),
                                   [&](const auto& slot) { return wants_split(bucket, *slot); });
    if (full != bucket.slots.end()) return split_slot(bucket, **full);
  }
  if (at == by_uid_.end()) begin_sync();
  return Status::ok();
}

/// Flushes until at most `goal` bytes are held, independently of a checkpoint.
Status Engine::flush_for_memory(std::uint64_t goal) {
  for (std::size_t seen = 0; seen <= by_uid_.size() && context_.stats.held_bytes > goal; ++seen) {
    auto at = by_uid_.upper_bound(memory_cursor_);
    if (at == by_uid_.end()) at = by_uid_.begin();
    memory_cursor_ = at->first;
    for (const auto& slot : at->second->slots) {
      while (context_.stats.held_bytes > goal && !slot->held().empty() && !slot->rewriting) {
        FJORD_TRY(flush_slot(*at->second, *slot));
      }
    }
  }
  // The remaining entries belong to a slot that is being rewritten, so the rewrite has to finish first.
  while (rewrite_ != nullptr && context_.stats.held_bytes > context_.options.limits.held_bytes_max) {
    if (rewrite_job_ != nullptr) rewrite_job_->join();
    FJORD_TRY(step_rewrite());
  }
  return Status::ok();
}

Status Engine::flush_slot(Bucket& bucket, Slot& slot) {
  if (slot.held().empty() || slot.rewriting) return Status::ok();
  const std::uint64_t bytes = slot.held().bytes();
  if (const Status status = slot.flush(kRunBytes, [&] { return new_file(); }); !status) {
    ++context_.stats.failed_writes;
    return status.with_context(bucket.id.to_string());
  }
  ++context_.stats.flushes;
  context_.stats.flushed_bytes += bytes - slot.held().bytes();
  return Status::ok();
}

/// Takes over the result of the last sync job and starts the next one, with some of the files to sync.
Status Engine::sync_some() {
  if (job_ != nullptr) {
    const Status status = std::exchange(job_, nullptr)->wait();
    if (!status) {
      fail(status);
      return status;
    }
    for (std::size_t i = synced_begin_; i < synced_end_; ++i) to_sync_[i].first->set_synced_size(to_sync_[i].second);
  }
  synced_begin_ = synced_end_;
  std::vector<std::shared_ptr<RandomAccessFile>> handles;
  for (; synced_end_ < to_sync_.size() && handles.size() < kSyncFilesMax; ++synced_end_) {
    SlotFile& file = *to_sync_[synced_end_].first;
    if (file.users == 0) continue;  // Retired since.
    auto handle = file.file().share();
    if (!handle) {
      synced_end_ = synced_begin_;  // The files before it in this group are not synced either.
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

void Engine::begin_sync() {
  std::set<std::uint32_t> seen;
  to_sync_.clear();
  for (const auto& [uid, bucket] : by_uid_) {
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) {
        if (file->is_dirty() && seen.insert(file->number()).second) to_sync_.emplace_back(file.file, file->size());
      }
    }
  }
  synced_begin_ = synced_end_ = 0;
  phase_ = Phase::Sync;
}

Status Engine::save() {
  Catalog catalog;
  catalog.lsn = journal_.last_lsn();
  catalog.first_segment = checkpoint_segment_;
  catalog.next_uid = next_uid_;
  catalog.next_file = next_file_;
  catalog.heirs = heirs_;
  for (const auto& [uid, bucket] : by_uid_) {
    catalog.buckets.emplace(uid, record_of(*bucket));
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) catalog.file_sizes[file->number()] = file->synced_size();
    }
  }
  retired_before_.insert(retired_before_.end(), retired_.begin(), retired_.end());
  retired_.clear();
  journal_ticket_ = journal_.begin_sync();
  phase_ = Phase::Save;
  // The journal is synced first, because a catalog must not be ahead of it.
  job_ = BackgroundJob::start(context_.options.background,
                              [encoded = encode_catalog(catalog, context_.options.stripe, context_.options.stripes),
                               files = journal_ticket_.files, &env = context_.env,
                               directory = context_.options.directory, stripe = context_.options.stripe]() -> Status {
                                for (const auto& file : files) FJORD_TRY(file->sync());
                                return save_catalog(env, directory, stripe, encoded);
                              });
  return Status::ok();
}

Status Engine::finish_checkpoint() {
  const Status status = std::exchange(job_, nullptr)->wait();
  phase_ = Phase::None;
  if (!status) {
    if (status.code() != StatusCode::NoSpace) fail(status);
    return status;
  }
  journal_.end_sync(std::exchange(journal_ticket_, {}));
  journal_.retire(checkpoint_segment_);
  // The journal begins after these splits and joins, so it has no writes for the replaced buckets.
  std::erase_if(heirs_, [&](const auto& heirs) { return heirs.second.lsn < checkpoint_lsn_; });
  for (const auto& file : retired_before_) {
    retired_bytes_ -= file->size();
    file->remove_when_unused();
  }
  retired_before_.clear();
  ++context_.stats.checkpoints;
  return Status::ok();
}

/// True if the slot is worth rewriting: if `idle`, by limits for times when nothing else is to be done.
bool Engine::needs_rewrite(const Slot& slot, bool idle) const {
  if (slot.files().empty() || !slot.held().empty()) return false;
  const std::uint64_t size = slot.files_bytes();
  const std::uint64_t live = slot.live_bytes();
  if (slot.files().size() > kFilesOfSlotMax || slot.wants_rewrite) return true;
  const std::uint64_t entries = slot.info().entries + slot.forgotten_entries();
  if (slot.forgotten_entries() * (idle ? kForgottenPartIdle : kForgottenPart) > entries) return true;
  const bool shared = std::any_of(slot.files().begin(), slot.files().end(), [](const auto& f) { return f->users > 1; });
  // The dead space of a shared file is in use by other slots: it costs reading time, not space.
  if (shared) return idle ? size > live + live / 4 : size / 3 > live;
  const std::uint64_t dead = size > live ? size - live : 0;
  const std::uint64_t limit = context_.options.limits.dead_percent_max;
  const std::uint64_t percent = idle ? (limit + 2) / 3 : limit;
  return dead > std::max<std::uint64_t>(kDeadBytesLeast, size * percent / 100);
}

bool Engine::pick_rewrite(bool busy) {
  if (rewrite_ != nullptr) return false;
  for (const bool idle : {false, true}) {
    if (idle && busy) break;
    for (const auto& [uid, bucket] : by_uid_) {
      for (const auto& slot : bucket->slots) {
        if (!needs_rewrite(*slot, idle) || !load(*slot)) continue;
        rewrite_uid_ = uid;
        rewrite_ = std::make_unique<SlotRewriter>(context_, *slot, new_file());
        return true;
      }
    }
  }
  return false;
}

Status Engine::step_rewrite() {
  if (rewrite_job_ != nullptr) return finish_rewrite();
  const Result<bool> written = rewrite_->step(kStepBytes);
  if (!written) {
    rewrite_.reset();
    return written.error();
  }
  if (!*written) return Status::ok();
  if (rewrite_->is_empty()) return finish_rewrite();
  FJORD_TRY_ASSIGN(auto handle, rewrite_->fresh().file().share());
  rewrite_job_ = BackgroundJob::start(
      context_.options.background,
      [handle = std::move(handle), &env = context_.env, directory = context_.options.directory]() -> Status {
        FJORD_TRY(handle->sync());
        return env.sync_directory(directory);
      });
  return Status::ok();
}

Status Engine::finish_rewrite() {
  const Status synced = rewrite_job_ == nullptr ? Status::ok() : std::exchange(rewrite_job_, nullptr)->wait();
  if (!synced) {
    fail(synced);
    rewrite_.reset();
    return synced;
  }
  Bucket* bucket = by_uid_.at(rewrite_uid_);
  rewrite_->fresh().set_synced_size(rewrite_->fresh().size());
  const auto before = rewrite_->finish();
  rewrite_->slot().wants_rewrite = false;
  if (rewrite_->slot().is_damaged()) note_damage(*bucket);
  rewrite_.reset();
  ++context_.stats.rewrites;
  retire_files(before);
  return commit(edit_of(std::span(&bucket, 1)));
}

bool Engine::scrub_some(MonotonicTime now) {
  const std::uint64_t rate = context_.options.limits.scrub_bytes_per_second;
  if (rate == 0 || now < scrub_next_) return false;
  constexpr Duration kBetweenPasses = std::chrono::minutes(10);
  if (scrub_ == nullptr) {
    const auto next = by_uid_.lower_bound(scrub_cursor_);
    if (next == by_uid_.end()) {
      if (scrub_cursor_ != 0) ++context_.stats.scrub_passes;
      scrub_cursor_ = 0;
      scrub_next_ = now + kBetweenPasses;
      return false;
    }
    scrub_cursor_ = next->first + 1;
    spi::IterateOptions options{.types = nullptr, .selection = nullptr};
    options.include_removed = true;
    scrub_ = std::make_unique<SlotfileIterator>(*this, next->first, next->second->id, options,
                                                SlotfileIterator::OnCorruption::Skip);
  }
  std::uint64_t bytes = 0;
  const Result<bool> more = scrub_->visit([&](const EntryView& entry) {
    bytes += entry.header.size() + entry.body.size();
    return bytes < kStepBytes;
  });
  context_.stats.scrubbed_bytes += bytes;
  scrub_next_ = now + Duration(static_cast<std::int64_t>(bytes * 1'000'000 / rate));
  if (!more || !*more) scrub_.reset();  // Unverified entries are now in quarantine and counted.
  return false;
}

}  // namespace fjord::slotfile
