#include "columns/column_content.h"

#include <algorithm>
#include <utility>

#include "fjord/common/lost_pages.h"
#include "fjord/storage/spi/entry_filter.h"

namespace fjord::mapreduce {
namespace {

using visitors::BucketOnNode;
using visitors::PositionRange;

/// A bucket is read again if more than 1 / kChangedPartMax of its entries are new: single documents cost more to look
/// at than many in sequence.
constexpr std::uint64_t kChangedPartMax = 4;
/// Greatest number of new entries that are looked at one by one. Operations of users wait meanwhile; reading a bucket
/// lets them pass after each block.
constexpr std::size_t kNewMax = 1024;

bool is_before(const spi::EntryMeta& a, const spi::EntryMeta& b) { return a.gid < b.gid; }

Result<Entries> newer_entries(const BucketOnNode& bucket, Timestamp after) {
  Entries newer;
  for (const BucketId part : bucket.parts) {
    const bool whole = is_whole(bucket, part);
    FJORD_TRY(bucket.provider.for_each_newer(part, after, [&](const spi::EntryMeta& entry) {
      if (whole || bucket.wanted.contains(visitors::position_of(entry.gid))) newer.push_back(entry);
    }));
  }
  std::sort(newer.begin(), newer.end(), is_before);
  return newer;
}

/// Returns true unless it is certain that the stored version of the document does not match. Errors: those of
/// PersistenceProvider::get().
Result<bool> may_match(const BucketOnNode& bucket, const spi::EntryFilter& filter, const GlobalId& gid) {
  for (const BucketId part : bucket.parts) {
    if (!PositionRange::of(part).contains(visitors::position_of(gid))) continue;
    const spi::Parts parts = filter.selects_on_body() ? spi::Parts::All : spi::Parts::HeaderOnly;
    const LostPages lost;
    FJORD_TRY_ASSIGN(const spi::StoredDocument document, bucket.provider.get(part, gid, parts));
    const bool matches = !document.removed && filter.matches(document.header, document.body);
    return matches || lost.any();
  }
  return true;
}

}  // namespace

Result<ColumnContent> content_of(const BucketOnNode& bucket) {
  ColumnContent content;
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

Result<Entries> others_of(const BucketOnNode& bucket, std::vector<GlobalId> given) {
  std::sort(given.begin(), given.end());
  Entries others;
  for (const BucketId part : bucket.parts) {
    const bool whole = is_whole(bucket, part);
    FJORD_TRY(bucket.provider.for_each_entry(part, [&](const spi::EntryMeta& entry) {
      if (!whole && !bucket.wanted.contains(visitors::position_of(entry.gid))) return;
      if (!std::binary_search(given.begin(), given.end(), entry.gid)) others.push_back(entry);
    }));
  }
  std::sort(others.begin(), others.end(), is_before);
  return others;
}

Result<std::optional<ColumnContent>> with_same_documents(const BucketOnNode& bucket, const ColumnContent& former,
                                                         const ColumnContent& now) {
  const std::optional<ColumnContent> not_certain;
  if (former.others == nullptr) return not_certain;
  FJORD_TRY_ASSIGN(const Entries newer, newer_entries(bucket, former.newest));
  if (newer.size() > kNewMax || newer.size() * kChangedPartMax > now.version.entries) return not_certain;
  // If the newer entries, and those among the others that they have replaced, make the whole difference, the documents
  // of the columns are what they were.
  ContentVersion expected = former.version;
  auto others = std::make_shared<Entries>();
  others->reserve(former.others->size() + newer.size());
  auto old = former.others->begin();
  for (const spi::EntryMeta& entry : newer) {
    while (old != former.others->end() && is_before(*old, entry)) others->push_back(*old++);
    if (old != former.others->end() && old->gid == entry.gid) {
      expected.subtract(old->gid, old->timestamp, old->removed);
      ++old;
    }
    expected.add(entry.gid, entry.timestamp, entry.removed);
    others->push_back(entry);
  }
  others->insert(others->end(), old, former.others->end());
  if (expected != now.version) return not_certain;
  const spi::EntryFilter filter(bucket.options);
  for (const spi::EntryMeta& entry : newer) {
    if (entry.removed) continue;
    FJORD_TRY_ASSIGN(const bool matches, may_match(bucket, filter, entry.gid));
    if (matches) return not_certain;
  }
  ColumnContent content = now;
  content.others = std::move(others);
  return std::optional(std::move(content));
}

}  // namespace fjord::mapreduce
