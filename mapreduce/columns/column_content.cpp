#include "columns/column_content.h"

#include <algorithm>
#include <utility>

#include "fjord/common/lost_pages.h"
#include "fjord/storage/spi/entry_filter.h"

namespace fjord::mapreduce {
namespace {

using visitors::BucketOnNode;
using visitors::PositionRange;

/// Greatest number of new entries that are looked at one by one. Operations of users wait meanwhile; reading a bucket
/// lets them pass after each block.
constexpr std::size_t kNewMax = 1024;

bool is_before(const spi::EntryMeta& a, const spi::EntryMeta& b) { return a.gid < b.gid; }

/// Returns true unless it is certain that the stored version of the document does not match. Errors: those of
/// PersistenceProvider::get().
Result<bool> may_match(const BucketOnNode& bucket, spi::EntryFilter& filter, const GlobalId& gid) {
  for (const BucketId part : bucket.parts) {
    if (!PositionRange::of(part).contains(visitors::position_of(gid))) continue;
    const spi::Parts parts = filter.selects_on_body() ? spi::Parts::All : spi::Parts::HeaderOnly;
    const LostPages lost;
    FJORD_TRY_ASSIGN(const spi::StoredDocument document, bucket.provider.get(part, gid, parts));
    if (document.removed) return lost.any();
    const Result<bool> matches = filter.matches(document.header, document.body);
    return !matches || *matches || filter.is_turn_over() || lost.any();
  }
  return true;
}

}  // namespace

Result<Entries> others_of(const BucketOnNode& bucket, std::vector<GlobalId> given) {
  std::sort(given.begin(), given.end());
  Entries others;
  FJORD_TRY(for_each_entry(bucket, [&](const spi::EntryMeta& entry) {
    if (!std::binary_search(given.begin(), given.end(), entry.gid)) others.push_back(entry);
  }));
  std::sort(others.begin(), others.end(), is_before);
  return others;
}

Result<std::optional<ColumnContent>> with_same_documents(const BucketOnNode& bucket, const ColumnContent& former,
                                                         const BucketContent& now) {
  const std::optional<ColumnContent> not_certain;
  if (former.others == nullptr) return not_certain;
  Entries newer;
  FJORD_TRY(for_each_newer(bucket, former.newest, [&](const spi::EntryMeta& entry) { newer.push_back(entry); }));
  if (newer.size() > kNewMax || are_too_many(newer.size(), now.version.entries)) return not_certain;
  std::sort(newer.begin(), newer.end(), is_before);
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
  spi::EntryFilter filter(bucket.options);
  for (const spi::EntryMeta& entry : newer) {
    if (entry.removed) continue;
    FJORD_TRY_ASSIGN(const bool matches, may_match(bucket, filter, entry.gid));
    if (matches) return not_certain;
  }
  return std::optional(ColumnContent{now, std::move(others)});
}

}  // namespace fjord::mapreduce
