#include "maintenance/merge_scheduler.h"

#include <utility>

#include "maintenance/need.h"

namespace fjord::distributor {

MergeScheduler::MergeScheduler(Context& context, TunableRegistry& tunables, Hooks hooks)
    : context_(context),
      hooks_(std::move(hooks)),
      merges_max_(tunables.declare("distributor.merges_max", context.options.merges_max)),
      paused_(tunables.declare("maintenance.paused")),
      merger_(context, failures_,
              {[this](BucketEntry& entry, bool ok) { on_merged(entry, ok); },
               [this](BucketEntry& entry) { hooks_.bucket_ready(entry.bucket); },
               [this](BucketEntry& entry, std::uint16_t node) { hooks_.damaged(entry, node); },
               [this] { return is_paused(); }}),
      merges_(context.metrics.counter("fjord_distributor_merges_total", "Buckets merged to the end")),
      merge_failures_(context.metrics.counter("fjord_distributor_merge_failures_total", "Merges to be repeated")) {}

void MergeScheduler::enqueue(BucketEntry& entry) {
  const Need need = need_of(entry, *context_.snapshot);
  if (const Merge* merge = entry.merge()) {
    // Stops a merge that moves a replica, because it may take long and work for safety must not wait for its end.
    if (entry.is<activity::Merging>() && merge->moves && is_for_safety(need)) restart(entry);
    return;  // If another merge is needed, the end of this one queues it.
  }
  if (!entry.merge_delayed) queue_.push(entry, priority_of(entry, need));
}

void MergeScheduler::restart(BucketEntry& entry) {
  --under_way_;
  entry.apply(event::MergeStopped{});
  enqueue(entry);
}

void MergeScheduler::await_sync(BucketEntry& entry) {
  if (std::exchange(entry.awaited, true)) return;
  enqueue_and_start(entry);
}

bool MergeScheduler::is_held_back(const BucketEntry& entry) const {
  return !entry.may_differ() && entry.obsolete.empty() && !entry.catching_up.empty() &&
         fillable(entry, context_, is_paused()).empty();
}

void MergeScheduler::retry_held_back() {
  for (const BucketTicket& ticket : std::exchange(held_back_, {})) {
    BucketEntry* entry = context_.buckets.find(ticket);
    if (entry != nullptr && !entry->merges_or_waits() && entry->wants_merge()) enqueue(*entry);
  }
}

void MergeScheduler::start() {
  const auto most = static_cast<unsigned>(merges_max_.value());
  const unsigned last = is_paused() ? kMaxRedundancy + static_cast<unsigned>(Need::Sync)
                                    : kMaxRedundancy + static_cast<unsigned>(Need::None);
  while (under_way_ < most) {
    BucketEntry* entry = queue_.pop(context_.buckets, last);
    if (entry == nullptr) return;
    if (is_held_back(*entry)) {
      held_back_.push_back(entry->ticket());
    } else if (entry->is<activity::Idle>()) {
      begin(*entry);
    } else {
      give_up(*entry);
    }
  }
}

void MergeScheduler::begin(BucketEntry& entry) {
  ++under_way_;
  entry.apply(event::MergeStarted{++last_run_, !is_for_safety(need_of(entry, *context_.snapshot))});
  merger_.merge(entry);
}

void MergeScheduler::give_up(BucketEntry& entry) {
  failures_.failed(entry.bucket, context_.clock.now());
  merge_failures_.add();
  enqueue_later(entry, kRetryDelay);
}

void MergeScheduler::on_merged(BucketEntry& entry, bool ok) {
  --under_way_;
  if (ok) failures_.forget(entry.bucket);
  if (ok && !entry.merge()->disturbed) {
    // No write starts before the new set is installed, so no write can reach one replica only.
    entry.apply(event::MergeSucceeded{});
    if (entry.writes_under_way == 0) hooks_.merged(entry);
  } else {
    entry.apply(event::MergeStopped{});
    if (!ok) failures_.failed(entry.bucket, context_.clock.now());
    merge_failures_.add();
    enqueue_later(entry, kRetryDelay);
  }
  start();
}

void MergeScheduler::enqueue_later(BucketEntry& entry, Duration delay) {
  entry.merge_delayed = true;
  context_.later(entry, delay, [this](BucketEntry& again) {
    again.merge_delayed = false;
    enqueue_and_start(again);
  });
}

void MergeScheduler::drained(BucketEntry& entry) {
  if (entry.merge()->disturbed) {
    merge_again(entry);
  } else {
    hooks_.merged(entry);
  }
}

void MergeScheduler::merge_again(BucketEntry& entry) {
  entry.apply(event::Resumed{});
  hooks_.bucket_ready(entry.bucket);
  enqueue_and_start(entry);
}

void MergeScheduler::merge_later(BucketEntry& entry, Duration delay) {
  entry.apply(event::Resumed{});
  enqueue_later(entry, delay);
  hooks_.bucket_ready(entry.bucket);
}

void MergeScheduler::completed(BucketEntry& entry) {
  merges_.add();
  entry.awaited = false;
  entry.merge_problem.clear();
}

void MergeScheduler::forget(const BucketEntry& entry) {
  under_way_ -= entry.is<activity::Merging>() ? 1 : 0;
  failures_.forget(entry.bucket);
}

}  // namespace fjord::distributor
