#include "merge_history.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "fjord/common/log.h"
#include "fjord/document/docblock.h"
#include "fjord/document/document_format.h"

namespace fjord::storage {

Status MergeHistory::compare(const rpc::ListEntriesReply& page) {
  if (std::exchange(is_first_page_, false)) return choose(page);
  if (source_forgotten_.removes.us == page.forgotten_removes_us &&
      source_forgotten_.tokens.us == page.forgotten_tokens_us) {
    return Status::ok();
  }
  return {StatusCode::NotReady, "the source of the merge has dropped removed entries meanwhile"};
}

Status MergeHistory::choose(const rpc::ListEntriesReply& page) {
  FJORD_TRY_ASSIGN(merge_.own_forgotten, merge_.stripe.provider->forgotten(merge_.request.bucket));
  source_forgotten_ = {.removes = Timestamp{page.forgotten_removes_us},
                       .tokens = Timestamp{page.forgotten_tokens_us},
                       .checksum = page.forgotten_checksum};
  const bool is_damaged = merge_.parts.damaged.contains(merge_.request.bucket);
  const bool is_current = merge_.request.epoch != 0 && page.epoch == merge_.request.epoch && !merge_.is_non_member();
  const bool is_trusted = is_current && !merge_.is_source_damaged();
  if (merge_.request.decides) {
    const bool is_behind = merge_.own_forgotten.removes < source_forgotten_.removes ||
                           merge_.own_forgotten.tokens < source_forgotten_.tokens;
    if (is_trusted && is_behind) {
      choice_ = HistoryChoice::Source;
    } else if (!is_damaged &&
               (source_forgotten_.removes < merge_.own_forgotten.removes || merge_.is_source_damaged())) {
      choice_ = HistoryChoice::Own;
    }
    return Status::ok();
  }
  // A distributor of an earlier version sends no epoch, and never has entries dropped.
  if (merge_.request.epoch == 0) return Status::ok();
  if (merge_.is_source_damaged() && !is_damaged) {
    choice_ = HistoryChoice::Own;
    return Status::ok();
  }
  if (is_trusted && (merge_.own_forgotten != source_forgotten_ || is_damaged)) choice_ = HistoryChoice::Source;
  // This replica must also accept those remove entries of the source that are older than what it has dropped itself.
  spi::Forgotten less = merge_.own_forgotten;
  less.removes = std::min(less.removes, source_forgotten_.removes);
  less.tokens = std::min(less.tokens, source_forgotten_.tokens);
  if (less == merge_.own_forgotten) return Status::ok();
  less.checksum = source_forgotten_.checksum;
  FJORD_TRY(merge_.stripe.provider->set_forgotten(merge_.request.bucket, less));
  merge_.own_forgotten = less;
  return Status::ok();
}

bool MergeHistory::hides_what_source_has() const {
  return std::any_of(merge_.window.own.begin(), merge_.window.own.end(), [this](const spi::EntryMeta& ours) {
    if (ours.timestamp >= source_forgotten_.removes) return false;
    const spi::EntryMeta* theirs = merge_.window.theirs_of(ours.gid);
    return theirs != nullptr && !theirs->removed && theirs->timestamp < ours.timestamp;
  });
}

/// Empties this replica. No acknowledged write is lost: the members have taken this replica's acknowledged writes
/// before (BucketMerger::merge() of the owner). Errors: Corruption if this replica is a member itself, as a member
/// holds what the other members hold. A replica can have the members' replica set without being one of them.
Status MergeHistory::empty_replica() {
  FJORD_TRY_ASSIGN(const ReplicaSet set, merge_.stripe.provider->replica_set(merge_.request.bucket));
  if (set.epoch == merge_.request.epoch && set.contains(merge_.stripe.options.index)) {
    return {StatusCode::Corruption, "a member has a write of before what the members dropped, and the others have not"};
  }
  log::info("storage", "{} is filled from nothing: it has unacknowledged writes from before what was dropped",
            merge_.request.bucket.to_string());
  FJORD_TRY(merge_.parts.buckets.delete_replica(merge_.request.state_version, merge_.request.bucket));
  FJORD_TRY(merge_.parts.buckets.create(merge_.request.bucket));
  merge_.stripe.metrics.refilled.add();
  return Status::ok();
}

/// Removes documents that were removed elsewhere: all replicas that had their remove entries have dropped these.
Status MergeHistory::drop_unknown_to_source() {
  std::vector<GlobalId> gids;
  for (const spi::EntryMeta& ours : merge_.window.own) {
    const bool is_known = ours.timestamp >= source_forgotten_.removes || merge_.window.theirs_of(ours.gid) != nullptr;
    if (!ours.removed && !is_known) gids.push_back(ours.gid);
  }
  for (std::size_t begin = 0; begin < gids.size();) {
    DocBlockBuilder builder;
    const Result<std::size_t> done = merge_.stripe.provider->read_entries(
        merge_.request.bucket, std::span(gids).subspan(begin), builder, merge_.stripe.options.merge_block_bytes);
    if (!done && done.error().code() != StatusCode::Corruption) return done.error();
    begin += done ? *done : 1;  // The entry cannot be read, so it is lost already and is skipped.
    const std::string block = builder.take();
    DocBlockReader reader(block);
    std::vector<spi::Write> writes;
    while (const std::optional<EntryView> entry = reader.next()) {
      if (entry->removed || entry->timestamp >= source_forgotten_.removes) continue;
      writes.push_back({.bucket = merge_.request.bucket,
                        .gid = entry->gid,
                        .timestamp = Timestamp{entry->timestamp.us + 1},
                        .remove = true,
                        .id = document_id_of_header(entry->header),
                        .header = {},
                        .body = {}});
    }
    std::vector<spi::WriteResult> results;
    if (!writes.empty()) FJORD_TRY(merge_.apply(writes, results));
    merge_.stripe.metrics.dropped_entries.add(writes.size());
  }
  return Status::ok();
}

Status MergeHistory::take_over() {
  if (choice_ != HistoryChoice::Source) return Status::ok();
  spi::Forgotten forgotten = source_forgotten_;
  if (merge_.request.decides) {
    forgotten.removes = std::max(forgotten.removes, merge_.own_forgotten.removes);
    forgotten.tokens = std::max(forgotten.tokens, merge_.own_forgotten.tokens);
  }
  FJORD_TRY(merge_.stripe.provider->set_forgotten(merge_.request.bucket, forgotten));
  merge_.parts.removed.count_again(merge_.request.bucket);
  return Status::ok();
}

}  // namespace fjord::storage
