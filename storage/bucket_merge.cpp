#include "bucket_merge.h"

#include <algorithm>
#include <limits>

#include "fjord/common/log.h"
#include "fjord/storage/spi/token_entry.h"

namespace fjord::storage {

namespace {

/// Pause between two steps in which the engine rewrites a bucket. Other requests to the stripe come in between.
constexpr Duration kRenewalPause = milliseconds(1);

}  // namespace

void BucketMerge::start(StripeParts& parts, Executor& executor, rpc::MergeBucket request, rpc::Responder respond) {
  parts.context.metrics.merges.add();
  auto merge = std::shared_ptr<BucketMerge>(new BucketMerge(parts, executor, std::move(request), std::move(respond)));
  merge->next_source();
}

BucketMerge::BucketMerge(StripeParts& parts, Executor& executor, rpc::MergeBucket request, rpc::Responder respond)
    : merge_{parts.context, parts, std::move(request)},
      executor_(executor),
      respond_(std::move(respond)),
      history_(merge_),
      tokens_(merge_),
      deadline_(parts.context.clock.now() + milliseconds(merge_.request.time_limit_ms)) {}

const std::string* BucketMerge::source_address() const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = merge_.stripe.snapshots.get();
  std::size_t node = merge_.request.sources[merge_.source];
  if (snapshot == nullptr || node >= snapshot->info().storage_addresses.size()) return nullptr;
  return &snapshot->info().storage_addresses[node];
}

Status BucketMerge::check_goes_on() const {
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = merge_.stripe.snapshots.get();
  if (snapshot->distributor_of(merge_.request.bucket) != merge_.request.distributor) {
    return {StatusCode::WrongDistribution, "the bucket has another owner since the merge began"};
  }
  if (merge_.request.epoch != 0) FJORD_TRY(merge_.stripe.check_epoch(merge_.request.bucket, merge_.request.epoch));
  if (merge_.request.time_limit_ms != 0 && merge_.stripe.clock.now() > deadline_) {
    return {StatusCode::Busy, "the merge takes longer than its time limit and has to be asked for again"};
  }
  return Status::ok();
}

void BucketMerge::next_source() {
  if (merge_.source == merge_.request.sources.size()) {
    finish(Status::ok());
    return;
  }
  merge_.window.range = {};
  history_.begin_source();
  next_window();
}

bool BucketMerge::is_repair() const {
  return merge_.parts.damaged.contains(merge_.request.bucket) && !merge_.request.decides && !merge_.is_non_member() &&
         !merge_.is_source_damaged();
}

void BucketMerge::renew() {
  if (Status goes_on = check_goes_on(); !goes_on) {
    finish(std::move(goes_on));
    return;
  }
  const Result<bool> renewed = merge_.stripe.provider->renew(merge_.request.bucket);
  if (renewed && !*renewed) {
    executor_.post_after(kRenewalPause, [self = shared_from_this()] { self->renew(); });
    return;
  }
  // After a failure the documents still are fetched. The engine refuses to mark the bucket as repaired.
  if (!renewed) {
    log::warning("storage", "{} is damaged and its files cannot be rewritten: {}", merge_.request.bucket.to_string(),
                 renewed.error().to_string());
  }
  renewed_ = true;
  next_source();
}

void BucketMerge::when_affordable(void (BucketMerge::*step)()) {
  if (Status goes_on = check_goes_on(); !goes_on) {
    finish(std::move(goes_on));
    return;
  }
  const Duration wait =
      merge_.stripe.budget.wait(merge_.stripe.clock.now(), MaintenanceBudget::purpose_of(merge_.request.only_moves));
  if (wait == Duration(0)) {
    (this->*step)();
  } else {
    pause(wait, step);
  }
}

void BucketMerge::pause(Duration wait, void (BucketMerge::*step)()) {
  wait = std::min(wait, YieldingRate::kPeriod);
  merge_.stripe.budget.note_throttled(wait);
  executor_.post_after(wait, [self = shared_from_this(), step] { self->when_affordable(step); });
}

void BucketMerge::charge(std::size_t bytes) {
  merge_.stripe.budget.charge(merge_.stripe.clock.now(), bytes, MaintenanceBudget::Direction::In,
                              MaintenanceBudget::purpose_of(merge_.request.only_moves));
}

/// Begins the next window. Metadata is not charged to the budget, so a merge that has nothing more to fetch ends within
/// its time limit, however slow the node is.
void BucketMerge::next_window() {
  if (Status goes_on = check_goes_on(); !goes_on) {
    finish(std::move(goes_on));
    return;
  }
  Result<spi::EntryWindow> own = spi::list_window(*merge_.stripe.provider, merge_.request.bucket, merge_.window.range,
                                                  merge_.stripe.options.merge_page_entries);
  if (!own) {
    finish(own.error());
    return;
  }
  merge_.window.own = std::move(own->entries);
  merge_.window.theirs.clear();
  merge_.window.end = own->more ? spi::group_of(merge_.window.own.back().gid) : spi::kLastGroup;
  ask_page();
}

void BucketMerge::ask_page(const GlobalId* after) {
  const std::string* address = source_address();
  if (address == nullptr) {
    finish(
        Status(StatusCode::NotReady, "no address of storage." + std::to_string(merge_.request.sources[merge_.source])));
    return;
  }
  rpc::ListEntries list;
  list.bucket = merge_.request.bucket;
  list.max_entries = merge_.stripe.options.merge_page_entries;
  list.by_group = after == nullptr;
  if (after != nullptr) list.after = *after;
  list.from_start = after == nullptr && merge_.window.range.from_start;
  list.after_group = merge_.window.range.after;
  list.last_group = merge_.window.end;
  rpc::call(merge_.stripe.transport, *address, std::move(list), merge_.stripe.options.peer_timeout, executor_,
            [self = shared_from_this()](Result<rpc::ListEntriesReply> page) { self->on_page(std::move(page)); });
}

void BucketMerge::on_page(Result<rpc::ListEntriesReply> page) {
  if (!page) {
    finish(page.error());
    return;
  }
  merge_.stripe.budget.count_metadata(page->entries.size() * rpc::kEntryKeyBytes);
  if (page->damaged) merge_.note_damaged_source();
  // The source has no replica of the bucket, so there is nothing to fetch from it.
  if (page->status.code() == StatusCode::NotFound) {
    source_done();
    return;
  }
  if (page->status && !renewed_ && is_repair()) {
    renew();
    return;
  }
  if (Status same = page->status ? history_.compare(*page) : page->status; !same) {
    finish(std::move(same));
    return;
  }
  if (page->status && !page->by_group) {
    take_old_page(std::move(*page));
    return;
  }
  Status taken = page->status ? merge_.window.take_page(*page) : page->status;
  if (!taken) {
    finish(std::move(taken));
    return;
  }
  compare_window();
}

void BucketMerge::take_old_page(rpc::ListEntriesReply page) {
  for (const rpc::EntryKey& theirs : page.entries) {
    merge_.window.theirs.push_back({theirs.gid, Timestamp{theirs.timestamp_us}, theirs.removed});
  }
  if (page.more && !page.entries.empty()) {
    ask_page(&page.entries.back().gid);
    return;
  }
  Result<spi::EntryWindow> own =
      spi::list_window(*merge_.stripe.provider, merge_.request.bucket, {}, std::numeric_limits<std::uint32_t>::max());
  if (!own) {
    finish(own.error());
    return;
  }
  merge_.window.own = std::move(own->entries);
  merge_.window.end = spi::kLastGroup;
  std::sort(merge_.window.theirs.begin(), merge_.window.theirs.end(),
            [](const spi::EntryMeta& a, const spi::EntryMeta& b) {
              return std::pair(spi::group_of(a.gid), a.gid) < std::pair(spi::group_of(b.gid), b.gid);
            });
  compare_window();
}

void BucketMerge::compare_window() {
  if (history_.choice() == HistoryChoice::Own) {
    std::erase_if(merge_.window.theirs,
                  [&](const spi::EntryMeta& entry) { return !entry.removed && history_.is_closed(entry.timestamp); });
  } else if (history_.choice() == HistoryChoice::Source && !merge_.request.decides &&
             history_.hides_what_source_has()) {
    if (Status emptied = history_.empty_replica(); !emptied) {
      finish(std::move(emptied));
    } else {
      next_source();
    }
    return;
  } else if (history_.choice() == HistoryChoice::Source) {
    if (Status dropped = history_.drop_unknown_to_source(); !dropped) {
      finish(std::move(dropped));
      return;
    }
  }
  merge_.stripe.metrics.merge_entries_peak.set(
      std::max(merge_.stripe.metrics.merge_entries_peak.value(),
               static_cast<double>(merge_.window.own.size() + merge_.window.theirs.size())));
  plan();
  ask_block();
}

void BucketMerge::plan() {
  missing_.clear();
  fetched_ = 0;
  for (const spi::EntryMeta& theirs : merge_.window.theirs) {
    const spi::EntryMeta* ours = merge_.window.own_of(theirs.gid);
    if (ours == nullptr || ours->timestamp < theirs.timestamp) {
      missing_.push_back({spi::group_of(theirs.gid), theirs.timestamp.us, theirs.gid});
    }
  }
  std::sort(missing_.begin(), missing_.end());
  tokens_.find_lost(missing_);
}

void BucketMerge::window_done() {
  if (merge_.window.end != spi::kLastGroup) {
    merge_.window.range = {.from_start = false, .after = merge_.window.end};
    next_window();
  } else if (take_refused()) {
    ask_block();
  } else {
    source_done();
  }
}

void BucketMerge::source_done() {
  Status ended = tokens_.cancel_orphans();
  if (ended) ended = history_.take_over();
  if (!ended) {
    finish(std::move(ended));
    return;
  }
  retaking_ = false;
  refused_.clear();
  ++merge_.source;
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
  fetch.bucket = merge_.request.bucket;
  fetch.max_bytes = merge_.stripe.options.merge_block_bytes;
  fetch.only_moves = merge_.request.only_moves;
  const std::size_t end = std::min(missing_.size(), fetched_ + merge_.stripe.options.merge_page_entries);
  fetch.gids.reserve(end - fetched_);
  fetch.listed_us.reserve(end - fetched_);
  for (std::size_t i = fetched_; i < end; ++i) {
    fetch.gids.push_back(missing_[i].gid);
    fetch.listed_us.push_back(missing_[i].timestamp_us);
  }
  rpc::call(merge_.stripe.transport, *address, std::move(fetch), merge_.stripe.options.peer_timeout, executor_,
            [self = shared_from_this()](Result<rpc::FetchEntriesReply> block) { self->on_block(std::move(block)); });
}

void BucketMerge::on_block(Result<rpc::FetchEntriesReply> block) {
  Status status = block ? block->status : block.error();
  // The source's own budget makes this merge wait.
  if (status.code() == StatusCode::Busy && block && block->wait_us > 0) {
    pause(Duration(static_cast<std::int64_t>(std::min<std::uint64_t>(block->wait_us, YieldingRate::kPeriod.count()))),
          &BucketMerge::send_ask_block);
    return;
  }
  if (block) charge(block->docblock.size());
  if (block && block->damaged) merge_.note_damaged_source();
  if (status && (block->done == 0 || block->done > missing_.size() - fetched_)) {
    status = Status(StatusCode::Corruption, "a merge source answered for entries that were not asked for");
  }
  if (status) {
    fetched_ += block->done;
    blocks_.push_back(std::move(block->docblock));
    const bool is_cut = fetched_ < missing_.size() && missing_[fetched_].group == missing_[fetched_ - 1].group;
    if (!is_cut) status = apply_blocks();
  }
  if (!status) {
    finish(std::move(status));
    return;
  }
  ask_block();
}

Status BucketMerge::apply_blocks() {
  std::uint64_t bytes = 0;
  for (const std::string& block : blocks_) bytes += block.size();
  FJORD_TRY(merge_.parts.space.check_merge(bytes));
  std::vector<std::string> blocks = std::exchange(blocks_, {});
  std::vector<spi::Write> writes;
  std::deque<std::string> cancelled;  // Ids of the cancelling writes, which refer to these strings.
  const std::shared_ptr<const rpc::ClusterSnapshot> snapshot = merge_.stripe.snapshots.get();
  for (const std::string& block : blocks) {
    DocBlockReader reader(block);
    while (std::optional<EntryView> entry = reader.next()) {
      if (history_.is_closed(entry->timestamp) && !spi::is_token_id(entry->id)) continue;
      writes.push_back({.bucket = merge_.request.bucket,
                        .gid = entry->gid,
                        .timestamp = entry->timestamp,
                        .remove = entry->removed,
                        .id = entry->id,
                        .header = entry->header,
                        .body = entry->body});
      if (!entry->removed && snapshot != nullptr) spi::set_compression(writes.back(), *snapshot->types());
      if (tokens_.loses(*entry, history_.is_closed(entry->timestamp))) {
        spi::TokenEntry token = *spi::TokenEntry::parse(entry->id);
        token.state = spi::TokenEntry::State::Cancelled;
        cancelled.push_back(token.id());
        writes.back().id = cancelled.back();
        // The cancelling entry is newer than the token that it cancels, on all replicas.
        writes.back().timestamp.us += 1;
      } else {
        tokens_.note(*entry);
      }
      tokens_.cancel_lost(entry->gid, cancelled, writes);
    }
    if (!reader.ok()) return {StatusCode::Corruption, "a merge source sent a malformed docblock"};
    merge_.reply.bytes_copied += block.size();
  }
  std::vector<spi::WriteResult> results;
  FJORD_TRY(merge_.apply(writes, results));
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const spi::Write& w = writes[i];
    if (retaking_ || !is_refused_for_loss(w, results[i])) continue;
    refused_.push_back({spi::group_of(w.gid), w.timestamp.us, w.gid});
  }
  return Status::ok();
}

bool BucketMerge::is_refused_for_loss(const spi::Write& write, const spi::WriteResult& result) {
  if (!result.superseded || !merge_.parts.damaged.contains(merge_.request.bucket)) return false;
  const Result<spi::StoredDocument> here =
      merge_.stripe.provider->get(merge_.request.bucket, write.gid, spi::Parts::HeaderOnly);
  return !here && here.error().code() == StatusCode::Corruption;
}

/// Starts to fetch the refused entries again. An intact member has the newest acknowledged version, so a newer version
/// that was lost here did not reach every member and was not acknowledged. The engine takes the older version once it
/// has forgotten the newer one. The bucket stays damaged until the distributor has compared the replicas.
bool BucketMerge::take_refused() {
  if (retaking_ || refused_.empty() || !is_repair()) return false;
  // After a failure, the comparison of the replicas shows that the refused entries are missing.
  if (!merge_.stripe.provider->forget_lost(merge_.request.bucket)) return false;
  retaking_ = true;
  merge_.window.own.clear();
  merge_.window.theirs.clear();
  tokens_.clear_lost();
  missing_ = std::exchange(refused_, {});
  fetched_ = 0;
  return true;
}

void BucketMerge::finish(Status status) {
  if (status) {
    Result<BucketInfo> info = merge_.stripe.provider->bucket_info(merge_.request.bucket);
    if (info) {
      merge_.reply.info = *info;
    } else {
      status = info.error();
    }
  }
  // The remove entries have to be counted again, because some of the fetched ones may be old enough to be dropped.
  if (merge_.reply.entries_copied > 0) merge_.parts.removed.count_again(merge_.request.bucket);
  merge_.reply.status = std::move(status);
  respond_(std::move(merge_.reply));
}

}  // namespace fjord::storage
