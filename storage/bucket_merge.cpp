#include "bucket_merge.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include "fjord/common/log.h"
#include "fjord/document/document_format.h"
#include "fjord/storage/spi/token_entry.h"

namespace fjord::storage {

void BucketMerge::start(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond) {
  stripe.metrics_.merges.add();
  auto merge = std::shared_ptr<BucketMerge>(new BucketMerge(stripe, std::move(request), std::move(respond)));
  merge->next_source();
}

BucketMerge::BucketMerge(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond)
    : stripe_(stripe),
      request_(std::move(request)),
      respond_(std::move(respond)),
      deadline_(stripe.clock_.now() + milliseconds(request_.time_limit_ms)) {}

const std::string* BucketMerge::source_address() const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = stripe_.snapshots_.get();
  std::size_t node = request_.sources[source_];
  if (snapshot == nullptr || node >= snapshot->info().storage_addresses.size()) return nullptr;
  return &snapshot->info().storage_addresses[node];
}

Status BucketMerge::check_goes_on() const {
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = stripe_.snapshots_.get();
  if (snapshot->distributor_of(request_.bucket) != request_.distributor) {
    return {StatusCode::WrongDistribution, "the bucket has another owner since the merge began"};
  }
  if (request_.epoch != 0) FJORD_TRY(stripe_.check_epoch(request_.bucket, request_.epoch));
  if (request_.time_limit_ms != 0 && stripe_.clock_.now() > deadline_) {
    return {StatusCode::Busy, "the merge takes longer than its time limit and has to be asked for again"};
  }
  return Status::ok();
}

void BucketMerge::next_source() {
  if (source_ == request_.sources.size()) {
    finish(Status::ok());
    return;
  }
  range_ = {};
  is_first_page_ = true;
  history_ = History::Union;
  next_window();
}

void BucketMerge::when_affordable(void (BucketMerge::*step)()) {
  if (Status goes_on = check_goes_on(); !goes_on) {
    finish(std::move(goes_on));
    return;
  }
  const Duration wait = stripe_.budget_.wait(stripe_.clock_.now(), MaintenanceBudget::purpose_of(request_.only_moves));
  if (wait == Duration(0)) {
    (this->*step)();
  } else {
    pause(wait, step);
  }
}

void BucketMerge::pause(Duration wait, void (BucketMerge::*step)()) {
  wait = std::min(wait, YieldingRate::kPeriod);
  stripe_.budget_.note_throttled(wait);
  stripe_.executor_->post_after(wait, [self = shared_from_this(), step] { self->when_affordable(step); });
}

void BucketMerge::charge(std::size_t bytes) {
  stripe_.budget_.charge(stripe_.clock_.now(), bytes, MaintenanceBudget::Direction::In,
                         MaintenanceBudget::purpose_of(request_.only_moves));
}

/// Metadata does not use the budget. So a merge that has nothing more to fetch ends within its time limit, however slow
/// the node is.
void BucketMerge::next_window() {
  if (Status goes_on = check_goes_on(); !goes_on) {
    finish(std::move(goes_on));
    return;
  }
  Result<spi::EntryWindow> own =
      spi::list_window(*stripe_.provider_, request_.bucket, range_, stripe_.options_.merge_page_entries);
  if (!own) {
    finish(own.error());
    return;
  }
  own_ = std::move(own->entries);
  theirs_.clear();
  window_end_ = own->more ? spi::group_of(own_.back().gid) : spi::kLastGroup;
  ask_page();
}

const spi::EntryMeta* BucketMerge::find(const std::vector<spi::EntryMeta>& entries, const GlobalId& gid) {
  const auto key = [](const GlobalId& g) { return std::pair(spi::group_of(g), g); };
  auto at = std::lower_bound(entries.begin(), entries.end(), key(gid),
                             [&](const spi::EntryMeta& entry, const auto& wanted) { return key(entry.gid) < wanted; });
  return at == entries.end() || at->gid != gid ? nullptr : &*at;
}

void BucketMerge::note_damaged_source() {
  if (!is_source_damaged()) reply_.damaged_sources.push_back(request_.sources[source_]);
}

bool BucketMerge::is_source_damaged() const {
  const auto& damaged = reply_.damaged_sources;
  return std::find(damaged.begin(), damaged.end(), request_.sources[source_]) != damaged.end();
}

bool BucketMerge::is_outsider() const {
  const auto& outsiders = request_.outsiders;
  return std::find(outsiders.begin(), outsiders.end(), request_.sources[source_]) != outsiders.end();
}

void BucketMerge::ask_page(const GlobalId* after) {
  const std::string* address = source_address();
  if (address == nullptr) {
    finish(Status(StatusCode::NotReady, "no address of storage." + std::to_string(request_.sources[source_])));
    return;
  }
  rpc::ListEntries list;
  list.bucket = request_.bucket;
  list.max_entries = stripe_.options_.merge_page_entries;
  list.by_group = after == nullptr;
  if (after != nullptr) list.after = *after;
  list.from_start = after == nullptr && range_.from_start;
  list.after_group = range_.after;
  list.last_group = window_end_;
  rpc::call(stripe_.transport_, *address, std::move(list), stripe_.options_.peer_timeout, *stripe_.executor_,
            [self = shared_from_this()](Result<rpc::ListEntriesReply> page) { self->on_page(std::move(page)); });
}

void BucketMerge::on_page(Result<rpc::ListEntriesReply> page) {
  if (!page) {
    finish(page.error());
    return;
  }
  stripe_.budget_.count_metadata(page->entries.size() * rpc::EntryKey::kBytes);
  if (page->damaged) note_damaged_source();
  if (page->status.code() == StatusCode::NotFound) {  // The source does not have the bucket.
    source_done();
    return;
  }
  if (Status same = page->status ? compare_forgotten(*page) : page->status; !same) {
    finish(std::move(same));
    return;
  }
  if (page->status && !page->by_group) {
    take_old_page(std::move(*page));
    return;
  }
  Status taken = page->status ? take_page(std::move(*page)) : page->status;
  if (!taken) {
    finish(std::move(taken));
    return;
  }
  compare_window();
}

void BucketMerge::take_old_page(rpc::ListEntriesReply page) {
  for (const rpc::EntryKey& theirs : page.entries) {
    theirs_.push_back({theirs.gid, Timestamp{theirs.timestamp_us}, theirs.removed});
  }
  if (page.more && !page.entries.empty()) {
    ask_page(&page.entries.back().gid);
    return;
  }
  Result<spi::EntryWindow> own =
      spi::list_window(*stripe_.provider_, request_.bucket, {}, std::numeric_limits<std::uint32_t>::max());
  if (!own) {
    finish(own.error());
    return;
  }
  own_ = std::move(own->entries);
  window_end_ = spi::kLastGroup;
  std::sort(theirs_.begin(), theirs_.end(), [](const spi::EntryMeta& a, const spi::EntryMeta& b) {
    return std::pair(spi::group_of(a.gid), a.gid) < std::pair(spi::group_of(b.gid), b.gid);
  });
  compare_window();
}

Status BucketMerge::compare_forgotten(const rpc::ListEntriesReply& page) {
  if (std::exchange(is_first_page_, false)) return choose_history(page);
  if (source_forgotten_.removes.us == page.forgotten_removes_us &&
      source_forgotten_.tokens.us == page.forgotten_tokens_us) {
    return Status::ok();
  }
  return {StatusCode::NotReady, "the source of the merge has dropped removed entries meanwhile"};
}

Status BucketMerge::choose_history(const rpc::ListEntriesReply& page) {
  FJORD_TRY_ASSIGN(own_forgotten_, stripe_.provider_->forgotten(request_.bucket));
  source_forgotten_ = {.removes = Timestamp{page.forgotten_removes_us},
                       .tokens = Timestamp{page.forgotten_tokens_us},
                       .checksum = page.forgotten_checksum};
  const bool is_damaged = stripe_.is_damaged(request_.bucket);
  const bool is_current = request_.epoch != 0 && page.epoch == request_.epoch && !is_outsider();
  const bool is_trusted = is_current && !is_source_damaged();
  if (request_.decides) {
    const bool is_behind =
        own_forgotten_.removes < source_forgotten_.removes || own_forgotten_.tokens < source_forgotten_.tokens;
    if (is_trusted && is_behind) {
      history_ = History::Source;
    } else if (!is_damaged && (source_forgotten_.removes < own_forgotten_.removes || is_source_damaged())) {
      history_ = History::Own;
    }
    return Status::ok();
  }
  if (request_.epoch == 0) return Status::ok();  // The distributor is of a version that does not drop anything.
  if (is_source_damaged() && !is_damaged) {
    history_ = History::Own;
    return Status::ok();
  }
  if (is_trusted && (own_forgotten_ != source_forgotten_ || is_damaged)) history_ = History::Source;
  // This replica must also take the source's remove entries that are older than what it has dropped itself.
  spi::Forgotten less = own_forgotten_;
  less.removes = std::min(less.removes, source_forgotten_.removes);
  less.tokens = std::min(less.tokens, source_forgotten_.tokens);
  if (less == own_forgotten_) return Status::ok();
  less.checksum = source_forgotten_.checksum;
  FJORD_TRY(stripe_.provider_->set_forgotten(request_.bucket, less));
  own_forgotten_ = less;
  return Status::ok();
}

bool BucketMerge::hides_what_source_has() const {
  return std::any_of(own_.begin(), own_.end(), [this](const spi::EntryMeta& ours) {
    if (ours.timestamp >= source_forgotten_.removes) return false;
    const spi::EntryMeta* theirs = find(theirs_, ours.gid);
    return theirs != nullptr && !theirs->removed && theirs->timestamp < ours.timestamp;
  });
}

/// Empties the replica and begins again with the source. Nothing that counts is lost: the members have taken this
/// replica's acknowledged writes before (BucketMerger::merge() of the owner). Errors: Corruption if this replica is a
/// member itself, as a member holds what the other members hold.
Status BucketMerge::begin_from_nothing() {
  FJORD_TRY_ASSIGN(const ReplicaSet set, stripe_.provider_->replica_set(request_.bucket));
  if (set.epoch == request_.epoch) {
    return {StatusCode::Corruption, "a member has a write of before what the members dropped, and the others have not"};
  }
  log::info("storage",
            "{} is filled from nothing: it has writes that nobody acknowledged, from before what was dropped",
            request_.bucket.to_string());
  FJORD_TRY(stripe_.delete_replica(request_.state_version, request_.bucket));
  FJORD_TRY(stripe_.provider_->create_bucket(request_.bucket));
  stripe_.metrics_.refilled.add();
  next_source();
  return Status::ok();
}

/// Such a document was removed, and all replicas that knew of the remove have dropped it.
Status BucketMerge::drop_unknown_to_source() {
  std::vector<GlobalId> gids;
  for (const spi::EntryMeta& ours : own_) {
    const bool is_known = ours.timestamp >= source_forgotten_.removes || find(theirs_, ours.gid) != nullptr;
    if (!ours.removed && !is_known) gids.push_back(ours.gid);
  }
  for (std::size_t begin = 0; begin < gids.size();) {
    DocBlockBuilder builder;
    const Result<std::size_t> done = stripe_.provider_->read_entries(request_.bucket, std::span(gids).subspan(begin),
                                                                     builder, stripe_.options_.merge_block_bytes);
    if (!done && done.error().code() != StatusCode::Corruption) return done.error();
    begin += done ? *done : 1;  // An entry that cannot be read is lost already.
    const std::string block = builder.take();
    DocBlockReader reader(block);
    std::vector<spi::Write> writes;
    while (const std::optional<EntryView> entry = reader.next()) {
      if (entry->removed || entry->timestamp >= source_forgotten_.removes) continue;
      writes.push_back({.bucket = request_.bucket,
                        .gid = entry->gid,
                        .timestamp = Timestamp{entry->timestamp.us + 1},
                        .remove = true,
                        .id = document_id_of_header(entry->header),
                        .header = {},
                        .body = {}});
    }
    std::vector<spi::WriteResult> results;
    if (!writes.empty()) FJORD_TRY(apply(writes, results));
    stripe_.metrics_.dropped_entries.add(writes.size());
  }
  return Status::ok();
}

Status BucketMerge::take_over_forgotten() {
  if (history_ != History::Source) return Status::ok();
  spi::Forgotten forgotten = source_forgotten_;
  if (request_.decides) {
    forgotten.removes = std::max(forgotten.removes, own_forgotten_.removes);
    forgotten.tokens = std::max(forgotten.tokens, own_forgotten_.tokens);
  }
  FJORD_TRY(stripe_.provider_->set_forgotten(request_.bucket, forgotten));
  stripe_.removed_.count_again(request_.bucket);
  return Status::ok();
}

void BucketMerge::compare_window() {
  if (history_ == History::Own) {
    std::erase_if(theirs_, [&](const spi::EntryMeta& entry) { return !entry.removed && is_closed(entry.timestamp); });
  } else if (history_ == History::Source && !request_.decides && hides_what_source_has()) {
    if (Status begun = begin_from_nothing(); !begun) finish(std::move(begun));
    return;
  } else if (history_ == History::Source) {
    if (Status dropped = drop_unknown_to_source(); !dropped) {
      finish(std::move(dropped));
      return;
    }
  }
  stripe_.metrics_.merge_entries_peak.set(
      std::max(stripe_.metrics_.merge_entries_peak.value(), static_cast<double>(own_.size() + theirs_.size())));
  plan();
  ask_block();
}

Status BucketMerge::take_page(rpc::ListEntriesReply page) {
  std::pair<std::uint64_t, GlobalId> before;
  theirs_.reserve(page.entries.size());
  for (const rpc::EntryKey& theirs : page.entries) {
    const std::pair key(spi::group_of(theirs.gid), theirs.gid);
    const bool in_order = theirs_.empty() || before < key;
    if (!in_order || key.first > window_end_ || !range_.contains(key.first)) {
      return {StatusCode::Corruption, "a merge source answered with another window than it was asked for"};
    }
    theirs_.push_back({theirs.gid, Timestamp{theirs.timestamp_us}, theirs.removed});
    before = key;
  }
  if (!page.more) return Status::ok();
  if (theirs_.empty()) return {StatusCode::Corruption, "a merge source has more behind an empty window"};
  // The source's window holds fewer groups than ours. Our other entries come with the next window.
  window_end_ = before.first;
  std::erase_if(own_, [&](const spi::EntryMeta& ours) { return spi::group_of(ours.gid) > window_end_; });
  return Status::ok();
}

void BucketMerge::plan() {
  missing_.clear();
  fetched_ = 0;
  for (const spi::EntryMeta& theirs : theirs_) {
    const spi::EntryMeta* ours = find(own_, theirs.gid);
    if (ours == nullptr || ours->timestamp < theirs.timestamp) {
      missing_.push_back({spi::group_of(theirs.gid), theirs.timestamp.us, theirs.gid});
    }
  }
  std::sort(missing_.begin(), missing_.end());
  lost_tokens_.clear();
  // A token that a damaged source does not know may be among its losses.
  if (!request_.decides || is_source_damaged()) return;
  if (is_outsider()) {
    find_lost_adopted();
  } else {
    find_lost_tokens();
  }
}

/// Finds the tokens that came with our losing versions and that the source does not know.
void BucketMerge::find_lost_tokens() {
  std::unordered_map<std::uint64_t, GlobalId> losing;  // By the timestamp of our version.
  for (const Missing& entry : missing_) {
    if (const spi::EntryMeta* ours = find(own_, entry.gid)) losing.emplace(ours->timestamp.us, entry.gid);
  }
  if (losing.empty()) return;
  for (const spi::EntryMeta& ours : own_) {
    auto document = losing.find(ours.timestamp.us);
    if (document == losing.end() || document->second == ours.gid || !ours.removed) continue;
    if (find(theirs_, ours.gid) == nullptr) lost_tokens_.emplace(document->second, ours.gid);
  }
}

/// Finds adopted tokens that this source makes invalid. A non-member replica may lack any token of the members, which
/// proves nothing. But a token that no member had, and whose document version is about to lose against this source's,
/// is unknown to the winning version too: the distributor that made that version read from members.
void BucketMerge::find_lost_adopted() {
  if (adopted_tokens_.empty()) return;
  for (const Missing& entry : missing_) {
    const auto [begin, end] = adopted_tokens_.equal_range(entry.gid);
    for (auto adopted = begin; adopted != end; ++adopted) {
      if (find(theirs_, adopted->second) == nullptr) lost_tokens_.insert(*adopted);
    }
  }
}

void BucketMerge::note_adopted(const EntryView& entry) {
  if (!request_.decides || !is_outsider() || !entry.removed || !spi::is_token_id(entry.id)) return;
  const std::optional<spi::TokenEntry> token = spi::TokenEntry::parse(entry.id);
  if (token && find(own_, entry.gid) == nullptr) adopted_tokens_.emplace(token->document, entry.gid);
}

void BucketMerge::cancel_lost_tokens(const GlobalId& document, std::deque<std::string>& ids,
                                     std::vector<spi::Write>& writes) {
  const auto [begin, end] = lost_tokens_.equal_range(document);
  for (auto lost = begin; lost != end; ++lost) {
    DocBlockBuilder builder;
    const GlobalId gids[] = {lost->second};
    if (!stripe_.provider_->read_entries(request_.bucket, gids, builder, 1)) continue;
    const std::string block = builder.take();
    const std::optional<EntryView> entry = DocBlockReader(block).next();
    std::optional<spi::TokenEntry> token = entry ? spi::TokenEntry::parse(entry->id) : std::nullopt;
    if (!token || token->document != document) continue;
    token->state = spi::TokenEntry::State::Cancelled;
    ids.push_back(token->id());
    writes.push_back({.bucket = request_.bucket,
                      .gid = lost->second,
                      .timestamp = Timestamp{entry->timestamp.us + 1},
                      .remove = true,
                      .id = ids.back(),
                      .header = {},
                      .body = {}});
  }
}

void BucketMerge::window_done() {
  if (window_end_ != spi::kLastGroup) {
    range_ = {.from_start = false, .after = window_end_};
    next_window();
  } else if (take_refused()) {
    ask_block();
  } else {
    source_done();
  }
}

void BucketMerge::note_orphan(const EntryView& entry) {
  if (!request_.decides || !is_source_damaged() || !entry.removed || !spi::is_token_id(entry.id)) return;
  const std::optional<spi::TokenEntry> token = spi::TokenEntry::parse(entry.id);
  if (token && find(own_, entry.gid) == nullptr) orphans_.push_back({token->document, entry.gid, entry.timestamp});
}

Status BucketMerge::cancel_orphans() {
  const std::vector<Orphan> orphans = std::exchange(orphans_, {});
  lost_tokens_.clear();
  std::vector<spi::Write> writes;
  std::deque<std::string> ids;
  for (const Orphan& orphan : orphans) {
    const Result<spi::StoredDocument> here =
        stripe_.provider_->get(request_.bucket, orphan.document, spi::Parts::HeaderOnly);
    const bool is_lost = here ? here->timestamp < orphan.timestamp : here.error().code() == StatusCode::NotFound;
    if (is_lost) lost_tokens_.emplace(orphan.document, orphan.token);
  }
  for (const Orphan& orphan : orphans) {
    cancel_lost_tokens(orphan.document, ids, writes);
    lost_tokens_.erase(orphan.document);
  }
  std::vector<spi::WriteResult> results;
  return writes.empty() ? Status::ok() : apply(writes, results);
}

void BucketMerge::source_done() {
  Status ended = cancel_orphans();
  if (ended) ended = take_over_forgotten();
  if (!ended) {
    finish(std::move(ended));
    return;
  }
  retaking_ = false;
  refused_.clear();
  ++source_;
  next_source();
}

void BucketMerge::ask_block() {
  if (fetched_ == missing_.size()) {
    window_done();
    return;
  }
  when_affordable(&BucketMerge::send_ask_block);
}

void BucketMerge::send_ask_block() {
  const std::string* address = source_address();
  if (address == nullptr) {
    finish(Status(StatusCode::NotReady, "the source of the merge left the cluster"));
    return;
  }
  rpc::FetchEntries fetch;
  fetch.bucket = request_.bucket;
  fetch.max_bytes = stripe_.options_.merge_block_bytes;
  fetch.only_moves = request_.only_moves;
  const std::size_t end = std::min(missing_.size(), fetched_ + stripe_.options_.merge_page_entries);
  fetch.gids.reserve(end - fetched_);
  for (std::size_t i = fetched_; i < end; ++i) fetch.gids.push_back(missing_[i].gid);
  rpc::call(stripe_.transport_, *address, std::move(fetch), stripe_.options_.peer_timeout, *stripe_.executor_,
            [self = shared_from_this()](Result<rpc::FetchEntriesReply> block) { self->on_block(std::move(block)); });
}

void BucketMerge::on_block(Result<rpc::FetchEntriesReply> block) {
  Status status = block ? block->status : block.error();
  if (status.code() == StatusCode::Busy && block && block->wait_us > 0) {  // The source has its own budget.
    pause(Duration(static_cast<std::int64_t>(std::min<std::uint64_t>(block->wait_us, YieldingRate::kPeriod.count()))),
          &BucketMerge::send_ask_block);
    return;
  }
  if (block) charge(block->docblock.size());
  if (block && block->damaged) note_damaged_source();
  if (status && (block->done == 0 || block->done > missing_.size() - fetched_)) {
    status = Status(StatusCode::Corruption, "a merge source answered for entries that were not asked for");
  }
  if (status) {
    fetched_ += block->done;
    blocks_.push_back(std::move(block->docblock));
    const bool is_cut = fetched_ < missing_.size() && missing_[fetched_].is_written_with(missing_[fetched_ - 1]);
    if (!is_cut) status = apply_blocks();
  }
  if (!status) {
    finish(std::move(status));
    return;
  }
  ask_block();
}

/// True for the token of a write if the document has a newer version here that was made without the token. The version
/// that a non-member replica has of the document may not show this: a later unconditional write may have reached that
/// replica too, or only that replica.
bool BucketMerge::loses(const EntryView& entry) const {
  if (!request_.decides || !entry.removed || !spi::is_token_id(entry.id)) return false;
  const std::optional<spi::TokenEntry> token = spi::TokenEntry::parse(entry.id);
  if (!token) return false;
  const spi::EntryMeta* ours = find(own_, token->document);
  const spi::EntryMeta* theirs = find(theirs_, token->document);
  // A member that had the token would still have it, or would drop it at once.
  if (is_closed(entry.timestamp)) return find(own_, entry.gid) == nullptr;
  if (ours == nullptr || theirs == nullptr) return false;
  // Members know every acknowledged write, unless they are damaged.
  const bool is_unknown = is_outsider() && find(own_, entry.gid) == nullptr && !stripe_.is_damaged(request_.bucket);
  return ours->timestamp > (is_unknown ? entry.timestamp : theirs->timestamp);
}

Status BucketMerge::apply_blocks() {
  FJORD_TRY(stripe_.check_space_to_merge());
  std::vector<std::string> blocks = std::exchange(blocks_, {});
  std::vector<spi::Write> writes;
  std::deque<std::string> cancelled;  // Ids that the writes refer to.
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = stripe_.snapshots_.get();
  for (const std::string& block : blocks) {
    DocBlockReader reader(block);
    while (std::optional<EntryView> entry = reader.next()) {
      if (is_closed(entry->timestamp) && !spi::is_token_id(entry->id)) continue;
      writes.push_back({.bucket = request_.bucket,
                        .gid = entry->gid,
                        .timestamp = entry->timestamp,
                        .remove = entry->removed,
                        .id = entry->id,
                        .header = entry->header,
                        .body = entry->body});
      if (!entry->removed && snapshot != nullptr) spi::set_compression(writes.back(), *snapshot->types());
      if (loses(*entry)) {
        spi::TokenEntry token = *spi::TokenEntry::parse(entry->id);
        token.state = spi::TokenEntry::State::Cancelled;
        cancelled.push_back(token.id());
        writes.back().id = cancelled.back();
        writes.back().timestamp.us += 1;  // Newer than the token that it cancels, on all replicas.
      } else {
        note_adopted(*entry);
        note_orphan(*entry);
      }
      cancel_lost_tokens(entry->gid, cancelled, writes);
    }
    if (!reader.ok()) return {StatusCode::Corruption, "a merge source sent a malformed docblock"};
    reply_.bytes_copied += block.size();
  }
  std::vector<spi::WriteResult> results;
  FJORD_TRY(apply(writes, results));
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const spi::Write& w = writes[i];
    if (retaking_ || !is_refused_for_loss(w, results[i])) continue;
    refused_.push_back({spi::group_of(w.gid), w.timestamp.us, w.gid});
  }
  return Status::ok();
}

Status BucketMerge::apply(std::vector<spi::Write>& writes, std::vector<spi::WriteResult>& results) {
  // An entry that was missing when the windows were compared may have been removed since, and the remove dropped.
  FJORD_TRY_ASSIGN(const spi::Forgotten now, stripe_.provider_->forgotten(request_.bucket));
  if (now != own_forgotten_) return {StatusCode::NotReady, "removed entries were dropped here since the merge began"};
  results.assign(writes.size(), {});
  stripe_.provider_->apply(writes, results, stripe_.options_.durability);
  for (spi::WriteResult& result : results) FJORD_TRY(std::move(result.status));
  reply_.entries_copied += writes.size();
  stripe_.metrics_.merged_entries.add(writes.size());
  return Status::ok();
}

bool BucketMerge::is_refused_for_loss(const spi::Write& write, const spi::WriteResult& result) {
  if (!result.superseded || !stripe_.is_damaged(request_.bucket)) return false;
  const Result<spi::StoredDocument> here = stripe_.provider_->get(request_.bucket, write.gid, spi::Parts::HeaderOnly);
  return !here && here.error().code() == StatusCode::Corruption;
}

/// An intact member has the newest acknowledged version, so a newer version that was lost here did not reach every
/// member and was not acknowledged. The engine takes the older version once the bucket is no longer marked as damaged.
/// The stripe counts the bucket as damaged until the distributor has compared the replicas.
bool BucketMerge::take_refused() {
  if (retaking_ || refused_.empty() || request_.decides || is_outsider() || is_source_damaged()) return false;
  // The comparison of the replicas will show the refused entries as missing.
  if (!stripe_.provider_->mark_repaired(request_.bucket)) return false;
  retaking_ = true;
  own_.clear();
  theirs_.clear();
  lost_tokens_.clear();
  missing_ = std::exchange(refused_, {});
  fetched_ = 0;
  return true;
}

void BucketMerge::finish(Status status) {
  if (status) {
    Result<BucketInfo> info = stripe_.provider_->bucket_info(request_.bucket);
    if (info) {
      reply_.info = *info;
    } else {
      status = info.error();
    }
  }
  // Some of the fetched entries may be old enough to be dropped.
  if (reply_.entries_copied > 0) stripe_.removed_.count_again(request_.bucket);
  reply_.status = std::move(status);
  respond_(std::move(reply_));
}

}  // namespace fjord::storage
