#include "visit_buckets.h"

#include <utility>

#include "fjord/document/docblock.h"

namespace fjord::visitors {

void VisitBuckets::resume_from(const SessionCursor& cursor) {
  done_before_ = cursor.done;
  done_ = done_before_;
}

bool VisitBuckets::add(BucketId bucket, bool may_be_missing) {
  const PositionRange range = PositionRange::of(bucket);
  const PositionRange& slice = context_.options.slice;
  if (!slice.overlaps(range)) {
    ++context_.progress.skipped_by_slice;
  } else if (done_before_.contains(range)) {
    ++context_.progress.skipped_as_done;
  } else if (selection_ && !selection_->may_match(bucket)) {
    ++context_.progress.skipped_by_selection;
  } else if (const auto [place, is_new] = buckets_.try_emplace(bucket); is_new) {
    place->second.partly_wanted = !slice.contains(range) || done_before_.overlaps(range);
    place->second.may_be_missing = may_be_missing;
    return true;
  }
  return false;
}

std::vector<BucketId> VisitBuckets::cut(BucketId bucket, unsigned bits) {
  const Bucket whole = std::move(buckets_.at(bucket));
  const auto& on_dropped = context_.callbacks.on_bucket_dropped;
  buckets_.erase(bucket);
  --context_.progress.buckets_total;
  if (on_dropped) on_dropped(bucket);
  std::vector<BucketId> added;
  const std::uint64_t parts = std::uint64_t{1} << (bits - bucket.used_bits());
  for (std::uint64_t i = 0; i < parts; ++i) {
    const BucketId part(bits, bucket.bits() | (i << bucket.used_bits()));
    if (!add(part, true)) continue;
    ++context_.progress.buckets_total;
    added.push_back(part);
    if (on_dropped) continue;
    for (const GlobalId& gid : whole.given) {
      if (bucket_of(gid, bits) == part) buckets_.at(part).given.insert(gid);
    }
  }
  return added;
}

void VisitBuckets::complete(BucketId bucket, std::string result) {
  buckets_.erase(bucket);
  done_.add(PositionRange::of(bucket));
  ++context_.progress.buckets_done;
  if (context_.callbacks.on_bucket_done) context_.callbacks.on_bucket_done(bucket, std::move(result));
}

void VisitBuckets::give(BucketId bucket, std::string docblock) {
  Bucket& known = buckets_.at(bucket);
  if (context_.options.deduplicate || known.partly_wanted) docblock = without_unwanted(known, std::move(docblock));
  if (docblock.empty()) return;
  known.is_begun = true;
  context_.progress.docblock_bytes += docblock.size();
  if (context_.callbacks.on_docblock) context_.callbacks.on_docblock(bucket, std::move(docblock));
}

std::string VisitBuckets::without_unwanted(Bucket& bucket, std::string docblock) const {
  std::vector<bool> wanted;  // For each document; if all are wanted, the block is passed on as it is.
  bool leaves_out = false;
  DocBlockReader reader(docblock);
  while (const auto entry = reader.next()) {
    const bool is_wanted = (!bucket.partly_wanted || wants(entry->gid)) &&
                           (!context_.options.deduplicate || bucket.given.insert(entry->gid).second);
    wanted.push_back(is_wanted);
    leaves_out = leaves_out || !is_wanted;
  }
  if (!leaves_out) return docblock;
  DocBlockBuilder kept;
  DocBlockReader again(docblock);
  for (const bool is_wanted : wanted) {
    const auto entry = again.next();
    if (is_wanted) kept.add(*entry);
  }
  return kept.take();
}

bool VisitBuckets::wants(const GlobalId& gid) const {
  const std::uint64_t position = position_of(gid);
  return context_.options.slice.contains(position) && !done_before_.contains(position);
}

}  // namespace fjord::visitors
