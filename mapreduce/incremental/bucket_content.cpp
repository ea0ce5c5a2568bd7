#include "incremental/bucket_content.h"

#include <algorithm>

namespace fjord::mapreduce {

using visitors::BucketOnNode;
using visitors::PositionRange;

bool is_whole(const BucketOnNode& bucket, BucketId part) { return bucket.wanted.contains(PositionRange::of(part)); }

Result<BucketContent> content_of(const BucketOnNode& bucket) {
  BucketContent content;
  for (const BucketId part : bucket.parts) {
    if (is_whole(bucket, part)) {
      FJORD_TRY_ASSIGN(const BucketInfo info, bucket.provider.bucket_info(part));
      content.version.entries += info.entries;
      content.version.checksum += info.checksum;
      content.newest = std::max(content.newest, Timestamp{info.max_timestamp_us});
      continue;
    }
    FJORD_TRY(bucket.provider.for_each_entry(part, [&](const spi::EntryMeta& entry) {
      if (!bucket.wanted.contains(visitors::position_of(entry.gid))) return;
      content.version.add(entry.gid, entry.timestamp, entry.removed);
      content.newest = std::max(content.newest, entry.timestamp);
    }));
  }
  return content;
}

Result<bool> is_damaged(const BucketOnNode& bucket) {
  for (const BucketId part : bucket.parts) {
    FJORD_TRY_ASSIGN(const bool damaged, bucket.provider.is_damaged(part));
    if (damaged) return true;
  }
  return false;
}

Result<bool> WholeBucket::read(const BucketOnNode& bucket, DocBlockBuilder& block, std::size_t bytes_max) {
  const std::size_t before = block.count();
  while (part_ < bucket.parts.size() && block.size() < bytes_max) {
    const BucketId part = bucket.parts[part_];
    if (iterator_ == nullptr) {
      FJORD_TRY_ASSIGN(iterator_, bucket.provider.iterate(part, bucket.options));
    }
    bool more = false;
    if (is_whole(bucket, part)) {
      FJORD_TRY_ASSIGN(more, iterator_->next(block, bytes_max));
    } else {
      FJORD_TRY_ASSIGN(more, iterator_->visit([&](const EntryView& entry) {
        if (bucket.wanted.contains(visitors::position_of(entry.gid))) block.add(entry);
        return block.size() < bytes_max;
      }));
    }
    if (more) break;
    iterator_.reset();
    ++part_;
  }
  given_ += block.count() - before;
  return part_ < bucket.parts.size();
}

}  // namespace fjord::mapreduce
