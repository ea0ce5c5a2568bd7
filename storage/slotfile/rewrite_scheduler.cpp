#include "rewrite_scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fjord::slotfile {

namespace {

/// Approximate number of bytes that one step copies, so that other work waits some milliseconds at most.
constexpr std::uint64_t kRewriteStepBytes = 1 << 20;
/// A file with fewer dead bytes is not rewritten because of them.
constexpr std::uint64_t kDeadBytesLeast = kFileHeaderBytes + 8 * kRunFrameBytes;
/// A slot is rewritten if more than 1/kForgottenPart of its entries are dropped remove entries.
constexpr std::uint64_t kForgottenPart = 4;
constexpr std::uint64_t kForgottenPartIdle = 16;
constexpr std::size_t kFilesOfSlotMax = 8;

}  // namespace

/// Returns true if the slot is worth rewriting. If `idle`, lower limits apply, because there is no other work.
bool RewriteScheduler::needs_rewrite(const Slot& slot, bool idle) const {
  if (slot.files().empty() || !slot.held().empty()) return false;
  const std::uint64_t size = slot.files_bytes();
  const std::uint64_t live = slot.live_bytes();
  if (slot.files().size() > kFilesOfSlotMax) return true;
  const std::uint64_t entries = slot.info().entries + slot.forgotten_entries();
  if (slot.forgotten_entries() * (idle ? kForgottenPartIdle : kForgottenPart) > entries) return true;
  const bool shared = std::any_of(slot.files().begin(), slot.files().end(), [](const auto& f) { return f->users > 1; });
  // Several slots share a file: the others may use this slot's dead space, so a rewrite saves reading time, not space.
  // It is worthwhile only if two thirds of the bytes are dead, or a fifth if idle.
  if (shared) return idle ? size > live + live / 4 : size / 3 > live;
  const std::uint64_t dead = size > live ? size - live : 0;
  const std::uint64_t limit = context_.options.limits.dead_percent_max;
  const std::uint64_t percent = idle ? (limit + 2) / 3 : limit;
  return dead > std::max<std::uint64_t>(kDeadBytesLeast, size * percent / 100);
}

bool RewriteScheduler::pick(bool busy) {
  if (rewrite_ != nullptr) return false;
  for (const bool idle : {false, true}) {
    if (idle && busy) break;
    for (const auto& [uid, bucket] : table_.by_uid()) {
      for (const auto& slot : bucket->slots) {
        if (!needs_rewrite(*slot, idle) || slot->rewrite_at() > context_.now || !can_begin(*bucket, *slot)) continue;
        begin(*bucket, *slot);
        return true;
      }
    }
  }
  return false;
}

bool RewriteScheduler::pick_suspect() {
  if (rewrite_ != nullptr || (!context_.may_renew && context_.now < suspects_at_)) return false;
  suspects_at_ = {std::numeric_limits<std::int64_t>::max()};
  for (const auto& [uid, bucket] : table_.by_uid()) {
    for (const auto& slot : bucket->slots) {
      if (!slot->is_suspect()) continue;
      if (slot->rewrite_at() <= context_.now && can_begin(*bucket, *slot)) {
        begin(*bucket, *slot);
        context_.may_renew = true;
        return true;
      }
      if (slot->rewrite_at() > context_.now) suspects_at_ = std::min(suspects_at_, slot->rewrite_at());
    }
  }
  context_.may_renew = false;
  return false;
}

/// Returns true if the slot may be rewritten; its index is then in memory.
bool RewriteScheduler::can_begin(Bucket& bucket, Slot& slot) {
  if (bucket.waits_for_renewal(slot)) return false;
  if (!table_.load(slot)) {
    slot.put_off_rewrite(context_.now);
    return false;
  }
  return !bucket.waits_for_renewal(slot);  // Loading the index may find that entries are lost.
}

Status RewriteScheduler::begin_renewal(Bucket& bucket) {
  Slot* next = nullptr;
  for (const auto& slot : bucket.slots) {
    if (slot->is_suspect() && (next == nullptr || slot->rewrite_at() < next->rewrite_at())) next = slot.get();
  }
  if (const Status loaded = table_.load(*next); !loaded) {
    next->put_off_rewrite(context_.now);
    return loaded;
  }
  begin(bucket, *next);
  return Status::ok();
}

void RewriteScheduler::begin(Bucket& bucket, Slot& slot) {
  uid_ = bucket.uid;
  const auto losses = bucket.renewing ? SlotRewriter::Losses::Accepted : SlotRewriter::Losses::Refused;
  rewrite_ = std::make_unique<SlotRewriter>(context_, slot, table_.new_file(), losses);
}

/// Drops the rewrite after an error. The slot stays as it is and is tried again later.
void RewriteScheduler::fail(const Status& status) {
  rewrite_->slot().put_off_rewrite(context_.now);
  if (rewrite_->slot().is_suspect()) {
    Bucket& bucket = *table_.by_uid().at(uid_);
    bucket.renewal_problem = status;
    bucket.renewing = false;
    context_.may_renew = true;
  }
  rewrite_.reset();
}

/// Ends a rewrite that has found damage in a bucket that is not being renewed. The files stay, because it is not known
/// whether another replica is intact.
Status RewriteScheduler::stop_with_losses() {
  Bucket& bucket = *table_.by_uid().at(uid_);
  rewrite_->quarantine_lost();
  rewrite_.reset();
  table_.note_damage(bucket);
  return Status::ok();
}

Status RewriteScheduler::step() {
  if (job_ != nullptr) return finish();
  const Result<bool> written = rewrite_->step(kRewriteStepBytes);
  if (!written) {
    fail(written.error());
    return written.error();
  }
  if (rewrite_->must_stop()) return stop_with_losses();
  if (!*written) return Status::ok();
  if (rewrite_->is_empty()) return finish();
  FJORD_TRY_ASSIGN(auto handle, rewrite_->fresh().file().share());
  job_ = BackgroundJob::start(
      context_.options.background,
      [handle = std::move(handle), &env = context_.env, directory = context_.options.directory]() -> Status {
        FJORD_TRY(handle->sync());
        return env.sync_directory(directory);
      });
  return Status::ok();
}

Status RewriteScheduler::finish() {
  const Status synced = job_ == nullptr ? Status::ok() : std::exchange(job_, nullptr)->wait();
  if (!synced) {
    table_.fail(synced);
    fail(synced);
    return synced;
  }
  Bucket* bucket = table_.by_uid().at(uid_);
  rewrite_->fresh().set_synced_size(rewrite_->fresh().size());
  // The old file goes with the next catalog. Until then a process that inspects the folder would find the damage.
  if (rewrite_->slot().is_suspect()) table_.wants_checkpoint = true;
  const auto before = rewrite_->finish();
  if (rewrite_->slot().is_damaged()) table_.note_damage(*bucket);
  rewrite_.reset();
  if (!bucket->is_suspect()) bucket->renewing = false;
  ++context_.stats.rewrites;
  table_.retired().add(before);
  return table_.commit(table_.edit_of(std::span(&bucket, 1)));
}

void RewriteScheduler::abandon() {
  if (job_ != nullptr) job_->cancel();
  job_.reset();
  rewrite_.reset();
}

}  // namespace fjord::slotfile
