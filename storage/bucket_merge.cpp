#include "bucket_merge.h"

#include <algorithm>

namespace fjord::storage {

void BucketMerge::start(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond) {
  stripe.metrics_.merges.add();
  auto merge = std::shared_ptr<BucketMerge>(new BucketMerge(stripe, std::move(request), std::move(respond)));
  merge->next_source();
}

BucketMerge::BucketMerge(StorageNode::Stripe& stripe, rpc::MergeBucket request, rpc::Responder respond)
    : stripe_(stripe), request_(std::move(request)), respond_(std::move(respond)) {}

const std::string* BucketMerge::source_address() const {
  std::shared_ptr<const rpc::ClusterSnapshot> snapshot = stripe_.snapshots_.get();
  std::size_t node = request_.sources[source_];
  if (snapshot == nullptr || node >= snapshot->info().storage_addresses.size()) return nullptr;
  return &snapshot->info().storage_addresses[node];
}

void BucketMerge::next_source() {
  if (source_ == request_.sources.size()) {
    finish(Status::ok());
    return;
  }
  Result<std::vector<spi::EntryMeta>> own = stripe_.provider_->list_entries(request_.bucket);
  if (!own) {
    finish(own.error());
    return;
  }
  own_ = std::move(*own);
  ask_page(nullptr);
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
  list.from_start = after == nullptr;
  if (after != nullptr) list.after = *after;
  rpc::call(stripe_.transport_, *address, std::move(list), stripe_.options_.peer_timeout, *stripe_.executor_,
            [self = shared_from_this()](Result<rpc::ListEntriesReply> page) { self->on_page(std::move(page)); });
}

void BucketMerge::on_page(Result<rpc::ListEntriesReply> page) {
  if (!page) {
    finish(page.error());
    return;
  }
  if (page->status.code() == StatusCode::NotFound) {  // The source holds nothing of this bucket.
    ++source_;
    next_source();
    return;
  }
  if (!page->status) {
    finish(page->status);
    return;
  }
  auto own = own_.begin();
  for (const rpc::EntryKey& theirs : page->entries) {
    own = std::lower_bound(own, own_.end(), theirs.gid,
                           [](const spi::EntryMeta& entry, const GlobalId& gid) { return entry.gid < gid; });
    bool have = own != own_.end() && own->gid == theirs.gid && own->timestamp.us >= theirs.timestamp_us;
    if (!have) missing_.push_back(theirs.gid);
  }
  more_pages_ = page->more && !page->entries.empty();
  if (!page->entries.empty()) page_end_ = page->entries.back().gid;
  ask_block();
}

void BucketMerge::ask_block() {
  if (missing_.empty()) {
    if (more_pages_) {
      ask_page(&page_end_);
    } else {
      ++source_;
      next_source();
    }
    return;
  }
  const std::string* address = source_address();
  if (address == nullptr) {
    finish(Status(StatusCode::NotReady, "the source of the merge left the cluster"));
    return;
  }
  rpc::FetchEntries fetch;
  fetch.bucket = request_.bucket;
  fetch.max_bytes = stripe_.options_.merge_block_bytes;
  fetch.gids = missing_;
  rpc::call(stripe_.transport_, *address, std::move(fetch), stripe_.options_.peer_timeout, *stripe_.executor_,
            [self = shared_from_this()](Result<rpc::FetchEntriesReply> block) { self->on_block(std::move(block)); });
}

void BucketMerge::on_block(Result<rpc::FetchEntriesReply> block) {
  Status status = block ? block->status : block.error();
  if (status && (block->done == 0 || block->done > missing_.size())) {
    status = Status(StatusCode::Corruption, "a merge source answered for entries that were not asked for");
  }
  if (status) status = apply_block(block->docblock);
  if (!status) {
    finish(std::move(status));
    return;
  }
  missing_.erase(missing_.begin(), missing_.begin() + block->done);
  ask_block();
}

Status BucketMerge::apply_block(const std::string& docblock) {
  std::vector<spi::Write> writes;
  DocBlockReader reader(docblock);
  while (std::optional<EntryView> entry = reader.next()) {
    writes.push_back({.bucket = request_.bucket,
                      .gid = entry->gid,
                      .timestamp = entry->timestamp,
                      .remove = entry->removed,
                      .id = entry->id,
                      .header = entry->header,
                      .body = entry->body});
  }
  if (!reader.ok()) return {StatusCode::Corruption, "a merge source sent a malformed docblock"};
  std::vector<spi::WriteResult> results(writes.size());
  stripe_.provider_->apply(writes, results, spi::Durability::Process);
  for (spi::WriteResult& result : results) FJORD_TRY(std::move(result.status));
  reply_.entries_copied += writes.size();
  reply_.bytes_copied += docblock.size();
  stripe_.metrics_.merged_entries.add(writes.size());
  return Status::ok();
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
  reply_.status = std::move(status);
  respond_(std::move(reply_));
}

}  // namespace fjord::storage
