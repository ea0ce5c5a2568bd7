// The order of merges: the next bucket, the source, and the replicas that there is space to fill.

#include <algorithm>

#include "bucket_maintainer.h"

namespace fjord::distributor {

/// Queues a merge. A bucket that waits moves forward if it needs more than when it was queued.
void BucketMaintainer::enqueue_merge(BucketEntry& entry) {
  const Need need = need_of(entry, *context_.snapshot);
  if (entry.merge_started) {
    // A move may take long, and work for safety does not wait for its end.
    if (entry.merge_moves && is_for_safety(need)) restart_merge(entry);
    return;
  }
  if (entry.merging && !entry.merge_priority) return;  // merge_later() queues it again.
  entry.merging = true;
  merge_queue_.push(entry, priority_of(entry, need));
}

void BucketMaintainer::restart_merge(BucketEntry& entry) {
  ++entry.merge_run;
  --merges_under_way_;
  entry.merge_started = false;
  entry.merging = false;
  enqueue_merge(entry);
}

void BucketMaintainer::await_sync(BucketEntry& entry) {
  if (std::exchange(entry.awaited, true)) return;
  enqueue_merge(entry);
  start_merges();
}

bool BucketMaintainer::is_held_back(const BucketEntry& entry) const {
  return !entry.may_differ() && entry.obsolete.empty() && !entry.catching_up.empty() && fillable(entry).empty();
}

std::vector<std::uint16_t> BucketMaintainer::fillable(const BucketEntry& entry) const {
  // Not need_of(), which names a more urgent need first: whether to fill does not depend on that need.
  const bool is_short = entry.intact().size() < wanted_members(entry, *context_.snapshot).size();
  std::vector<std::uint16_t> nodes = entry.catching_up;
  std::erase_if(
      nodes, [&](std::uint16_t node) { return !context_.space.may_fill(node, is_short ? Need::Restore : Need::Move); });
  return nodes;
}

void BucketMaintainer::start_merges() {
  const auto most = static_cast<unsigned>(merges_max_.value());
  const unsigned last = is_paused() ? kMaxRedundancy + static_cast<unsigned>(Need::Sync)
                                    : kMaxRedundancy + static_cast<unsigned>(Need::None);
  while (merges_under_way_ < most) {
    BucketEntry* entry = merge_queue_.pop(context_.buckets, last);
    if (entry == nullptr) return;
    if (is_held_back(*entry)) {
      entry->merging = false;
      held_back_.push_back(entry->ticket());
      continue;
    }
    ++merges_under_way_;
    ++entry->merge_run;
    entry->merge_started = true;
    entry->merge_moves = !is_for_safety(need_of(*entry, *context_.snapshot));
    merge_primary(entry->bucket);
  }
}

bool BucketMaintainer::is_paused() const { return paused_.value() != 0 || !context_.snapshot->state().is_cluster_up(); }

bool BucketMaintainer::is_busy_or_paused() const {
  return is_paused() || merges_under_way_ > 0 || !merge_queue_.is_empty();
}

/// The member that the others are merged from: an intact one with space for what it lacks, if there is one.
std::uint16_t BucketMaintainer::merge_source(const BucketEntry& entry) const {
  for (std::uint16_t node : entry.intact()) {
    if (context_.space.takes_merges(node)) return node;
  }
  return entry.primary();
}

}  // namespace fjord::distributor
