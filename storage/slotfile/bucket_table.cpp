#include "bucket_table.h"

#include <algorithm>

#include "fjord/common/log.h"

namespace fjord::slotfile {

void Bucket::index_cells() {
  for (const auto& slot : slots) {
    for (unsigned cell = slot->first_cell(); cell < slot->end_cell(); ++cell) by_cell[cell] = slot.get();
  }
}

BucketInfo Bucket::info() const {
  BucketInfo sum;
  for (const auto& slot : slots) {
    const BucketInfo& info = slot->info();
    sum.entries += info.entries;
    sum.documents += info.documents;
    sum.bytes += info.bytes;
    sum.checksum += info.checksum;
    sum.max_timestamp_us = std::max(sum.max_timestamp_us, info.max_timestamp_us);
  }
  return sum;
}

unsigned Bucket::depth() const {
  unsigned depth = 0;
  for (const auto& slot : slots) depth = std::max(depth, slot->depth());
  return depth;
}

bool Bucket::is_damaged() const {
  return damaged || std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return slot->is_damaged(); });
}

bool Bucket::is_suspect() const {
  return std::any_of(slots.begin(), slots.end(), [](const auto& slot) { return slot->is_suspect(); });
}

bool Bucket::waits_for_renewal(const Slot& slot) const { return slot.is_suspect() && !renewing && is_damaged(); }

Bucket* BucketTable::find(BucketId bucket) const {
  const auto found = buckets_.find(bucket);
  return found == buckets_.end() ? nullptr : found->second.get();
}

std::vector<BucketId> BucketTable::list() const {
  std::vector<BucketId> result;
  result.reserve(buckets_.size());
  for (const auto& [id, bucket] : buckets_) result.push_back(id);
  std::sort(result.begin(), result.end());
  return result;
}

Bucket* BucketTable::adopt(std::unique_ptr<Bucket> bucket) {
  Bucket* const raw = bucket.get();
  if (const Bucket* const older = find(raw->id)) by_uid_.erase(older->uid);
  by_uid_[raw->uid] = raw;
  buckets_[raw->id] = std::move(bucket);
  return raw;
}

void BucketTable::drop(Bucket& bucket) {
  std::vector<std::shared_ptr<SlotFile>> files;
  for (const auto& slot : bucket.slots) {
    for (const FileRef& ref : slot->files()) files.push_back(ref.file);
  }
  by_uid_.erase(bucket.uid);
  buckets_.erase(bucket.id);
  retired_.add(files);
}

BucketRecord BucketTable::record_of(const Bucket& bucket) const {
  BucketRecord record{.uid = bucket.uid,
                      .id = bucket.id,
                      .replicas = bucket.replicas,
                      .forgotten = bucket.forgotten,
                      .damaged = bucket.is_damaged(),
                      .slots = {}};
  for (const auto& slot : bucket.slots) record.slots.push_back(slot->record());
  return record;
}

Edit BucketTable::edit_of(std::span<Bucket* const> buckets) const {
  Edit edit{
      .removed = {}, .buckets = {}, .successors = {}, .file_sizes = {}, .next_uid = next_uid_, .next_file = next_file_};
  for (const Bucket* bucket : buckets) {
    edit.buckets.push_back(record_of(*bucket));
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) edit.file_sizes[file->number()] = file->synced_size();
    }
  }
  return edit;
}

Status BucketTable::commit(Edit edit, bool durable) {
  FJORD_TRY(health());
  return journal_.append(RecordType::Edit, encode_edit(edit), {}, durable || context_.options.syncs_changes());
}

Catalog BucketTable::catalog() const {
  Catalog catalog;
  catalog.next_uid = next_uid_;
  catalog.next_file = next_file_;
  catalog.successors = successors_;
  for (const auto& [uid, bucket] : by_uid_) {
    catalog.buckets.emplace(uid, record_of(*bucket));
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) catalog.file_sizes[file->number()] = file->synced_size();
    }
  }
  return catalog;
}

void BucketTable::restore(const Catalog& catalog) {
  next_uid_ = catalog.next_uid;
  next_file_ = catalog.next_file;
  successors_ = catalog.successors;
}

Bucket* BucketTable::find_successor(std::uint64_t uid, const GlobalId& gid) const {
  if (const auto found = by_uid_.find(uid); found != by_uid_.end()) return found->second;
  const auto successors = successors_.find(uid);
  if (successors == successors_.end()) return nullptr;
  for (const auto& [successor, id] : successors->second.buckets) {
    if (bucket_of(gid, id.used_bits()) == id) return find_successor(successor, gid);
  }
  return nullptr;
}

Status BucketTable::load(Slot& slot) {
  if (!slot.is_loaded()) {
    ++context_.stats.index_loads;
    Bucket* const bucket = find(slot.bucket());
    Status loaded = slot.load();
    // The rest of a damaged bucket can be merged only if it can be listed.
    if (loaded.code() == StatusCode::IoError && bucket != nullptr && bucket->damaged) {
      loaded = slot.load(Slot::Unreadable::IsLost);
    }
    FJORD_TRY(loaded);
    if (slot.is_damaged() && bucket != nullptr) note_damage(*bucket);
    evict_indexes();
  }
  loaded_.touch(slot);
  return Status::ok();
}

void BucketTable::evict_indexes() {
  Slot* slot = loaded_.oldest();
  // Never unloads the index used last, because it is in use.
  while (context_.stats.index_bytes > context_.options.limits.index_bytes_max && slot != nullptr &&
         slot != loaded_.newest()) {
    Slot* next = loaded_.newer(*slot);
    if (slot->held().empty() && !slot->rewriting && !slot->is_damaged() && !slot->pinned && !slot->is_list_bad()) {
      slot->unload();
    }
    slot = next;
  }
}

std::shared_ptr<SlotFile> BucketTable::new_file() {
  const std::uint32_t number = next_file_ * context_.options.stripes + context_.options.stripe;
  ++next_file_;
  return std::make_shared<SlotFile>(context_, number, 0);
}

void BucketTable::note_damage(Bucket& bucket) {
  bool fresh = false;
  for (const auto& slot : bucket.slots) {
    if (!slot->is_damaged() || slot->damage_reported) continue;
    slot->damage_reported = true;
    fresh = true;
  }
  if (fresh) report_found(bucket);
}

void BucketTable::report_found(Bucket& bucket) {
  damage_found_ = true;
  if (std::find(damaged_.begin(), damaged_.end(), bucket.id) == damaged_.end()) damaged_.push_back(bucket.id);
  set_damaged(bucket);
}

void BucketTable::set_damaged(Bucket& bucket) {
  if (bucket.damaged) return;
  bucket.damaged = true;
  bucket.damage_saved = false;
  damage_unsaved_ = true;
  for (const auto& slot : bucket.slots) slot->set_suspect();
}

Status BucketTable::save_damage() {
  if (!damage_unsaved_) return Status::ok();
  std::vector<Bucket*> unsaved;
  for (const auto& [uid, bucket] : by_uid_) {
    if (bucket->damaged && !bucket->damage_saved) unsaved.push_back(bucket);
  }
  if (!unsaved.empty()) FJORD_TRY(commit(edit_of(unsaved), true));
  for (Bucket* bucket : unsaved) bucket->damage_saved = true;
  damage_unsaved_ = false;
  return Status::ok();
}

void BucketTable::fail(const Status& status) {
  if (!health_) return;
  health_ = status.with_context("a sync failed; closed until the next start");
  log::error("slotfile", "{}", health_.to_string());
}

}  // namespace fjord::slotfile
