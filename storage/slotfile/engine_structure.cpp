#include <algorithm>
#include <set>
#include <utility>

#include "engine.h"
#include "fjord/common/log.h"

namespace fjord::slotfile {

BucketRecord Engine::record_of(const Bucket& bucket) const {
  BucketRecord record{.uid = bucket.uid,
                      .id = bucket.id,
                      .replicas = bucket.replicas,
                      .forget_removes_before_us = bucket.forget_removes_before_us,
                      .damaged = bucket.is_damaged(),
                      .slots = {}};
  for (const auto& slot : bucket.slots) record.slots.push_back(slot->record());
  return record;
}

Edit Engine::edit_of(std::span<Bucket* const> buckets) const {
  Edit edit{
      .removed = {}, .buckets = {}, .heirs = {}, .file_sizes = {}, .next_uid = next_uid_, .next_file = next_file_};
  for (const Bucket* bucket : buckets) {
    edit.buckets.push_back(record_of(*bucket));
    for (const auto& slot : bucket->slots) {
      for (const auto& file : slot->files()) edit.file_sizes[file->number()] = file->synced_size();
    }
  }
  return edit;
}

Status Engine::commit(Edit edit) {
  FJORD_TRY(health());
  return journal_.append(RecordType::Edit, encode_edit(edit), {}, context_.options.syncs_changes());
}

Bucket* Engine::adopt(std::unique_ptr<Bucket> bucket) {
  Bucket* const raw = bucket.get();
  by_uid_[raw->uid] = raw;
  buckets_[raw->id] = std::move(bucket);
  return raw;
}

/// Takes a bucket out, and what only it referred to.
void Engine::drop(Bucket& bucket) {
  if (rewrite_ != nullptr && rewrite_uid_ == bucket.uid) abandon_rewrite();
  std::vector<std::shared_ptr<SlotFile>> files;
  for (const auto& slot : bucket.slots) {
    for (const FileRef& ref : slot->files()) files.push_back(ref.file);
  }
  by_uid_.erase(bucket.uid);
  buckets_.erase(bucket.id);
  retire_files(files);
}

/// Those of the files that no slot refers to any more are removed when the next catalog says so.
void Engine::retire_files(std::span<const std::shared_ptr<SlotFile>> files) {
  std::set<std::uint32_t> seen;
  for (const auto& file : files) {
    if (file->users != 0 || !seen.insert(file->number()).second) continue;
    retired_bytes_ += file->size();
    retired_.push_back(file);
  }
}

bool Engine::wants_split(const Bucket& bucket, const Slot& slot) const {
  const SlotfileLimits& limits = context_.options.limits;
  if ((2U << bucket.depth()) > limits.slotfiles_max || slot.info().entries < 2) return false;
  // Documents that would not fit beside others anyway are no reason: splitting does not help them.
  return slot.info().entries > limits.entries_max ||
         (slot.live_bytes() > limits.file_bytes_max && slot.live_bytes() / slot.info().entries < limits.file_bytes_max);
}

/// Everything that is held is written, and all indexes are loaded.
Status Engine::prepare(Bucket& bucket) {
  if (rewrite_ != nullptr && rewrite_uid_ == bucket.uid) abandon_rewrite();
  for (const auto& slot : bucket.slots) {
    FJORD_TRY(flush_slot(bucket, *slot));
    FJORD_TRY(load(*slot));
    slot->pinned = true;
  }
  return Status::ok();
}

/// A new slot that refers to the files of the sources and holds those of their entries that are its own.
std::unique_ptr<Slot> Engine::combine(std::span<Bucket* const> sources, BucketId id, unsigned first_cell,
                                      unsigned depth) {
  auto made = std::make_unique<Slot>(context_, loaded_, id, first_cell, depth);
  made->make_index();
  const unsigned end_cell = first_cell + (kCells >> depth);
  for (const Bucket* source : sources) {
    for (const auto& slot : source->slots) {
      if (slot->end_cell() <= first_cell || slot->first_cell() >= end_cell) continue;
      for (const MetaEntry& entry : slot->index().entries()) {
        if (entry.file == MetaEntry::kGone || !made->covers(entry.gid)) continue;
        made->adopt(entry, slot->files()[entry.file]);
      }
      made->inherit_damage(*slot);
    }
  }
  return made;
}

std::unique_ptr<Bucket> Engine::combine_all(std::span<Bucket* const> sources, BucketId id, unsigned depth,
                                            const ReplicaSet& replicas) {
  auto made = std::make_unique<Bucket>();
  made->id = id;
  made->uid = next_uid_++;
  made->replicas = replicas;
  for (const Bucket* source : sources) {
    made->damaged = made->damaged || source->damaged;
    // What one of them must not forget yet, none may.
    made->forget_removes_before_us = source == sources.front()
                                         ? source->forget_removes_before_us
                                         : std::min(made->forget_removes_before_us, source->forget_removes_before_us);
  }
  for (unsigned cell = 0; cell < kCells; cell += kCells >> depth) {
    made->slots.push_back(combine(sources, id, cell, depth));
  }
  made->index_cells();
  made->forget_pending = made->forget_removes_before_us != 0;
  return made;
}

Status Engine::replace_slots(Bucket& bucket, unsigned depth) {
  FJORD_TRY(prepare(bucket));
  Bucket* const source = &bucket;
  std::vector<std::unique_ptr<Slot>> slots;
  for (unsigned cell = 0; cell < kCells; cell += kCells >> depth) {
    slots.push_back(combine(std::span(&source, 1), bucket.id, cell, depth));
  }
  std::vector<std::shared_ptr<SlotFile>> files;
  for (const auto& slot : bucket.slots) {
    for (const FileRef& ref : slot->files()) files.push_back(ref.file);
  }
  std::swap(bucket.slots, slots);
  bucket.index_cells();
  bucket.forget_pending = bucket.forget_removes_before_us != 0;
  slots.clear();
  const Status status = commit(edit_of(std::span(&source, 1)));
  retire_files(files);
  evict_indexes();
  return status;
}

Status Engine::split_slots(Bucket& bucket) {
  if (rewrite_ != nullptr && rewrite_uid_ == bucket.uid) return Status::ok();  // the next time
  context_.stats.splits += bucket.slots.size();
  return replace_slots(bucket, bucket.depth() + 1);
}

/// When few documents are left, in as many slots as they had at their best.
bool Engine::join_some_slots() {
  const SlotfileLimits& limits = context_.options.limits;
  for (const auto& [uid, bucket] : by_uid_) {
    const unsigned depth = bucket->depth();
    if (depth == 0 || (rewrite_ != nullptr && rewrite_uid_ == uid)) continue;
    bool sparse = true;
    for (std::size_t i = 0; i + 1 < bucket->slots.size() && sparse; i += 2) {
      const Slot& a = *bucket->slots[i];
      const Slot& b = *bucket->slots[i + 1];
      sparse = a.depth() == depth && b.depth() == depth && a.held().empty() && b.held().empty() &&
               a.live_bytes() + b.live_bytes() < limits.file_bytes_max / 4 &&
               a.info().entries + b.info().entries < limits.entries_max / 4;
    }
    const bool too_many = bucket->slots.size() > limits.slotfiles_max;
    if (!sparse && !too_many) continue;
    context_.stats.joins += bucket->slots.size() / 2;
    return replace_slots(*bucket, depth - 1).is_ok();
  }
  return false;
}

/// The buckets `sources` are replaced by `targets`, which have all their entries between them. One edit, hence atomic.
Status Engine::replace_buckets(std::span<Bucket* const> sources, std::span<const BucketId> targets) {
  unsigned depth = 0;
  for (Bucket* source : sources) {
    FJORD_TRY(prepare(*source));
    depth = std::max(depth, source->depth());
  }
  ReplicaSet common = sources.front()->replicas;
  for (const Bucket* source : sources) {
    const bool is_target = std::find(targets.begin(), targets.end(), source->id) != targets.end();
    if (!is_target && source->replicas != common) common = {};
  }
  std::vector<std::unique_ptr<Bucket>> made;
  for (const BucketId target : targets) {
    const Bucket* before = find(target);
    made.push_back(combine_all(sources, target, depth, before == nullptr ? common : before->replicas));
  }
  std::vector<Bucket*> raw;
  for (const auto& bucket : made) raw.push_back(bucket.get());
  Edit edit = edit_of(raw);
  for (const Bucket* source : sources) {
    edit.removed.push_back(source->uid);
    Heirs& heirs = edit.heirs.emplace_back(Heirs{.uid = source->uid, .lsn = journal_.last_lsn() + 1, .buckets = {}});
    for (const Bucket* bucket : raw) heirs.buckets.emplace_back(bucket->uid, bucket->id);
  }
  const std::vector<Heirs> heirs = edit.heirs;
  FJORD_TRY(commit(std::move(edit)));
  for (const Heirs& of : heirs) heirs_[of.uid] = of;
  for (Bucket* source : sources) drop(*source);
  for (auto& bucket : made) adopt(std::move(bucket));
  evict_indexes();
  return Status::ok();
}

namespace {

Status no_bit_left(BucketId bucket) {
  return Status(StatusCode::InvalidArgument, bucket.to_string() + " uses all bits that there are");
}

Status no_bucket(BucketId bucket) { return Status(StatusCode::NotFound, bucket.to_string() + " is not here"); }

}  // namespace

Status Engine::split_bucket(BucketId bucket) {
  if (bucket.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(bucket);
  Bucket* const source = find(bucket);
  if (source == nullptr) return no_bucket(bucket);
  const std::array<BucketId, 2> halves = spi::halves_of(bucket);
  if (!is_ours(halves[0]) || !is_ours(halves[1])) {
    return Status(StatusCode::InvalidArgument, bucket.to_string() + " has halves in different stripes");
  }
  std::vector<Bucket*> sources = {source};
  for (const BucketId half : halves) {
    if (Bucket* there = find(half)) sources.push_back(there);
  }
  return replace_buckets(sources, halves);
}

Status Engine::join_buckets(BucketId parent) {
  if (parent.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(parent);
  std::vector<Bucket*> sources;
  for (const BucketId half : spi::halves_of(parent)) {
    if (Bucket* there = find(half)) sources.push_back(there);
  }
  if (sources.empty()) return no_bucket(parent);
  if (Bucket* there = find(parent)) sources.push_back(there);
  return replace_buckets(sources, std::span(&parent, 1));
}

}  // namespace fjord::slotfile
