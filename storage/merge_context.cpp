#include "merge_context.h"

#include <algorithm>
#include <utility>

namespace fjord::storage {

namespace {

const spi::EntryMeta* find(const std::vector<spi::EntryMeta>& entries, const GlobalId& gid) {
  const auto key = [](const GlobalId& g) { return std::pair(spi::group_of(g), g); };
  auto at = std::lower_bound(entries.begin(), entries.end(), key(gid),
                             [&](const spi::EntryMeta& entry, const auto& wanted) { return key(entry.gid) < wanted; });
  return at == entries.end() || at->gid != gid ? nullptr : &*at;
}

}  // namespace

const spi::EntryMeta* MergeWindow::own_of(const GlobalId& gid) const { return find(own, gid); }
const spi::EntryMeta* MergeWindow::theirs_of(const GlobalId& gid) const { return find(theirs, gid); }

Status MergeWindow::take_page(const rpc::ListEntriesReply& page) {
  std::pair<std::uint64_t, GlobalId> before;
  theirs.reserve(page.entries.size());
  for (const rpc::EntryKey& entry : page.entries) {
    const std::pair key(spi::group_of(entry.gid), entry.gid);
    const bool in_order = theirs.empty() || before < key;
    if (!in_order || key.first > end || !range.contains(key.first)) {
      return {StatusCode::Corruption, "a merge source answered with another window than it was asked for"};
    }
    theirs.push_back({entry.gid, Timestamp{entry.timestamp_us}, entry.removed});
    before = key;
  }
  if (!page.more) return Status::ok();
  if (theirs.empty()) return {StatusCode::Corruption, "a merge source has more behind an empty window"};
  // The source's window ends before this replica's window. The other entries of this replica belong to the next window.
  end = before.first;
  std::erase_if(own, [&](const spi::EntryMeta& ours) { return spi::group_of(ours.gid) > end; });
  return Status::ok();
}

void MergeContext::note_damaged_source() {
  if (!is_source_damaged()) reply.damaged_sources.push_back(request.sources[source]);
}

bool MergeContext::is_source_damaged() const {
  const auto& damaged = reply.damaged_sources;
  return std::find(damaged.begin(), damaged.end(), request.sources[source]) != damaged.end();
}

bool MergeContext::is_non_member() const {
  const auto& non_members = request.non_members;
  return std::find(non_members.begin(), non_members.end(), request.sources[source]) != non_members.end();
}

Status MergeContext::apply(std::vector<spi::Write>& writes, std::vector<spi::WriteResult>& results) {
  // An entry that this replica lacked when the windows were compared may have been removed since, and its remove entry
  // dropped.
  FJORD_TRY_ASSIGN(const spi::Forgotten now, stripe.provider->forgotten(request.bucket));
  if (now != own_forgotten) return {StatusCode::NotReady, "removed entries were dropped here since the merge began"};
  results.assign(writes.size(), {});
  stripe.provider->apply(writes, results, stripe.options.durability);
  for (spi::WriteResult& result : results) FJORD_TRY(std::move(result.status));
  reply.entries_copied += writes.size();
  stripe.metrics.merged_entries.add(writes.size());
  return Status::ok();
}

}  // namespace fjord::storage
