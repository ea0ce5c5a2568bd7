#include "merge_source.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace fjord::storage {

rpc::ListEntriesReply MergeSource::list_entries(const rpc::ListEntries& request) {
  rpc::ListEntriesReply reply;
  const std::size_t limit = request.max_entries == 0 ? context_.options.merge_page_entries : request.max_entries;
  const spi::GroupRange range{
      .from_start = request.from_start, .after = request.after_group, .last = request.last_group};
  const Result<spi::EntryWindow> window = request.by_group
                                              ? spi::list_window(*context_.provider, request.bucket, range, limit)
                                              : list_by_gid(request, limit);
  reply.damaged = damaged_.contains(request.bucket);
  if (!window) {
    reply.status = window.error();
    return reply;
  }
  if (const Result<spi::Forgotten> forgotten = context_.provider->forgotten(request.bucket)) {
    reply.forgotten_removes_us = forgotten->removes.us;
    reply.forgotten_tokens_us = forgotten->tokens.us;
    reply.forgotten_checksum = forgotten->checksum;
  }
  if (const Result<ReplicaSet> set = context_.provider->replica_set(request.bucket)) reply.epoch = set->epoch;
  reply.entries.reserve(window->entries.size());
  for (const spi::EntryMeta& entry : window->entries) {
    reply.entries.push_back({entry.gid, entry.timestamp.us, entry.removed});
  }
  reply.more = window->more;
  reply.by_group = request.by_group;
  return reply;
}

/// Lists entries by gid, for nodes of an earlier version, which know no windows.
Result<spi::EntryWindow> MergeSource::list_by_gid(const rpc::ListEntries& request, std::size_t limit) {
  FJORD_TRY_ASSIGN(const std::vector<spi::EntryMeta> all, context_.provider->list_entries(request.bucket));
  auto begin = all.begin();
  if (!request.from_start) {
    begin = std::upper_bound(all.begin(), all.end(), request.after,
                             [](const GlobalId& after, const spi::EntryMeta& entry) { return after < entry.gid; });
  }
  const auto left = static_cast<std::size_t>(all.end() - begin);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(limit, left));
  return spi::EntryWindow{.entries = {begin, end}, .more = limit < left};
}

rpc::FetchEntriesReply MergeSource::fetch_entries(const rpc::FetchEntries& request) {
  rpc::FetchEntriesReply reply;
  const auto purpose = MaintenanceBudget::purpose_of(request.only_moves);
  if (const Duration wait = context_.budget.wait(context_.clock.now(), purpose); wait > Duration(0)) {
    const std::string name = "storage." + std::to_string(context_.options.index);
    reply.status = Status(StatusCode::Busy, name + " moves as much as it may (maintenance.bytes_per_s)",
                          {.node = name, .setting = "maintenance.bytes_per_s"});
    reply.wait_us = static_cast<std::uint64_t>(wait.count());
    return reply;
  }
  DocBlockBuilder block;
  std::size_t max_bytes = request.max_bytes == 0 ? context_.options.merge_block_bytes : request.max_bytes;
  Result<std::size_t> done = context_.provider->read_entries(request.bucket, request.gids, block, max_bytes);
  reply.damaged = damaged_.contains(request.bucket);
  Status status = done ? add_tokens_of_newer(request, *done, block) : done.error();
  if (!status) {
    reply.status = std::move(status);
    return reply;
  }
  reply.done = static_cast<std::uint32_t>(*done);
  reply.docblock = block.take();
  context_.budget.charge(context_.clock.now(), reply.docblock.size(), MaintenanceBudget::Direction::Out, purpose);
  return reply;
}

Status MergeSource::add_tokens_of_newer(const rpc::FetchEntries& request, std::size_t done, DocBlockBuilder& block) {
  if (request.listed_us.size() != request.gids.size()) return Status::ok();  // A node of an earlier version asks.
  std::map<std::uint64_t, std::uint64_t> listed_us;  // By the group of each document that has been written since then.
  DocBlockReader reader(block.bytes());
  std::size_t i = 0;  // The block has the entries in the order of the gids.
  while (const std::optional<EntryView> entry = reader.next()) {
    while (i < done && request.gids[i] != entry->gid) ++i;
    if (i == done) break;
    if (entry->timestamp.us > request.listed_us[i]) listed_us.emplace(spi::group_of(entry->gid), request.listed_us[i]);
  }
  if (listed_us.empty()) return Status::ok();
  const std::set<GlobalId> asked(request.gids.begin(), request.gids.end());
  std::vector<GlobalId> newer;
  FJORD_TRY(context_.provider->for_each_entry(request.bucket, [&](const spi::EntryMeta& entry) {
    const auto found = listed_us.find(spi::group_of(entry.gid));
    const bool is_newer = found != listed_us.end() && entry.removed && entry.timestamp.us > found->second;
    if (is_newer && !asked.contains(entry.gid)) newer.push_back(entry.gid);
  }));
  FJORD_TRY_ASSIGN(const std::size_t added, context_.provider->read_entries(request.bucket, newer, block,
                                                                            std::numeric_limits<std::size_t>::max()));
  if (added != newer.size()) return {StatusCode::Corruption, "a token cannot be read"};
  return Status::ok();
}

}  // namespace fjord::storage
