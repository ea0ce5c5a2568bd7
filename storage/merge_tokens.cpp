#include "merge_tokens.h"

#include <optional>
#include <utility>

#include "fjord/storage/spi/token_entry.h"

namespace fjord::storage {

void MergeTokens::find_lost(const std::vector<MissingEntry>& missing) {
  lost_tokens_.clear();
  // Nothing to find: a token that a damaged source lacks may be among the data that it has lost.
  if (!merge_.request.decides || merge_.is_source_damaged()) return;
  if (merge_.is_non_member()) {
    find_lost_adopted(missing);
  } else {
    find_lost_to_member(missing);
  }
}

void MergeTokens::note(const EntryView& entry) {
  note_adopted(entry);
  note_orphan(entry);
}

/// Finds the tokens that belong to versions on this replica that lose, and that the source does not have.
void MergeTokens::find_lost_to_member(const std::vector<MissingEntry>& missing) {
  // Gids of documents whose version here loses, by the timestamp of that version.
  std::unordered_map<std::uint64_t, GlobalId> losing;
  for (const MissingEntry& entry : missing) {
    if (const spi::EntryMeta* ours = merge_.window.own_of(entry.gid)) losing.emplace(ours->timestamp.us, entry.gid);
  }
  if (losing.empty()) return;
  for (const spi::EntryMeta& ours : merge_.window.own) {
    auto document = losing.find(ours.timestamp.us);
    if (document == losing.end() || document->second == ours.gid || !ours.removed) continue;
    if (merge_.window.theirs_of(ours.gid) == nullptr) lost_tokens_.emplace(document->second, ours.gid);
  }
}

/// Finds adopted tokens that this source makes invalid. A non-member replica may lack any token of the members, so its
/// lacking a token proves nothing. But if no member had a token, and the token's document version is about to lose
/// against this source's version, then the winning version was made without the token: its distributor read from
/// members.
void MergeTokens::find_lost_adopted(const std::vector<MissingEntry>& missing) {
  if (adopted_tokens_.empty()) return;
  for (const MissingEntry& entry : missing) {
    const auto [begin, end] = adopted_tokens_.equal_range(entry.gid);
    for (auto adopted = begin; adopted != end; ++adopted) {
      if (merge_.window.theirs_of(adopted->second) == nullptr) lost_tokens_.insert(*adopted);
    }
  }
}

void MergeTokens::note_adopted(const EntryView& entry) {
  if (!merge_.request.decides || !merge_.is_non_member() || !entry.removed || !spi::is_token_id(entry.id)) return;
  const std::optional<spi::TokenEntry> token = spi::TokenEntry::parse(entry.id);
  if (token && merge_.window.own_of(entry.gid) == nullptr) adopted_tokens_.emplace(token->document, entry.gid);
}

void MergeTokens::note_orphan(const EntryView& entry) {
  if (!merge_.request.decides || !merge_.is_source_damaged() || !entry.removed || !spi::is_token_id(entry.id)) return;
  const std::optional<spi::TokenEntry> token = spi::TokenEntry::parse(entry.id);
  if (token && merge_.window.own_of(entry.gid) == nullptr)
    orphans_.push_back({token->document, entry.gid, entry.timestamp});
}

void MergeTokens::cancel_lost(const GlobalId& document, std::deque<std::string>& ids, std::vector<spi::Write>& writes) {
  const auto [begin, end] = lost_tokens_.equal_range(document);
  for (auto lost = begin; lost != end; ++lost) {
    DocBlockBuilder builder;
    const GlobalId gids[] = {lost->second};
    if (!merge_.stripe.provider->read_entries(merge_.request.bucket, gids, builder, 1)) continue;
    const std::string block = builder.take();
    const std::optional<EntryView> entry = DocBlockReader(block).next();
    std::optional<spi::TokenEntry> token = entry ? spi::TokenEntry::parse(entry->id) : std::nullopt;
    if (!token || token->document != document) continue;
    token->state = spi::TokenEntry::State::Cancelled;
    ids.push_back(token->id());
    writes.push_back({.bucket = merge_.request.bucket,
                      .gid = lost->second,
                      .timestamp = Timestamp{entry->timestamp.us + 1},
                      .remove = true,
                      .id = ids.back(),
                      .header = {},
                      .body = {}});
  }
}

Status MergeTokens::cancel_orphans() {
  const std::vector<Orphan> orphans = std::exchange(orphans_, {});
  lost_tokens_.clear();
  std::vector<spi::Write> writes;
  std::deque<std::string> ids;
  for (const Orphan& orphan : orphans) {
    const Result<spi::StoredDocument> here =
        merge_.stripe.provider->get(merge_.request.bucket, orphan.document, spi::Parts::HeaderOnly);
    const bool is_lost = here ? here->timestamp < orphan.timestamp : here.error().code() == StatusCode::NotFound;
    if (is_lost) lost_tokens_.emplace(orphan.document, orphan.token);
  }
  for (const Orphan& orphan : orphans) {
    cancel_lost(orphan.document, ids, writes);
    lost_tokens_.erase(orphan.document);
  }
  std::vector<spi::WriteResult> results;
  return writes.empty() ? Status::ok() : merge_.apply(writes, results);
}

/// Returns true for the token of a write if the document has a newer version here that was made without the token. The
/// version that a non-member replica has of the document may not show this: a later unconditional write may have
/// reached that replica too, or only that replica.
bool MergeTokens::loses(const EntryView& entry, bool is_closed) const {
  if (!merge_.request.decides || !entry.removed || !spi::is_token_id(entry.id)) return false;
  const std::optional<spi::TokenEntry> token = spi::TokenEntry::parse(entry.id);
  if (!token) return false;
  const spi::EntryMeta* ours = merge_.window.own_of(token->document);
  const spi::EntryMeta* theirs = merge_.window.theirs_of(token->document);
  // A token that this replica lacks loses: if it had ever had the token, it would still have it, or drop it at once.
  if (is_closed) return merge_.window.own_of(entry.gid) == nullptr;
  if (ours == nullptr || theirs == nullptr) return false;
  // An intact member has every acknowledged write, so a token that it lacks is of a write that was not acknowledged.
  const bool is_unknown = merge_.is_non_member() && merge_.window.own_of(entry.gid) == nullptr &&
                          !merge_.parts.damaged.contains(merge_.request.bucket);
  return ours->timestamp > (is_unknown ? entry.timestamp : theirs->timestamp);
}

}  // namespace fjord::storage
