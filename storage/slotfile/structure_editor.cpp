#include "structure_editor.h"

#include <algorithm>
#include <utility>

namespace fjord::slotfile {

namespace {

Status no_bit_left(BucketId bucket) {
  return Status(StatusCode::InvalidArgument, bucket.to_string() + " uses all bits that there are");
}

}  // namespace

bool StructureEditor::wants_split(const Bucket& bucket, const Slot& slot) const {
  const SlotfileLimits& limits = context_.options.limits;
  if (bucket.slots.size() >= limits.slotfiles_max || slot.depth() == kCellBits || slot.info().entries < 2) return false;
  if (slot.rewriting) return false;  // The slot is being rewritten, so the split is tried again later.
  // If more bytes than this are held, they are flushed before the split, which would copy them; if urgent, they are
  // not.
  constexpr std::uint64_t kHeldBytesMost = 8 << 20;
  const bool urgent = slot.info().entries / 4 > limits.entries_max || slot.live_bytes() / 4 > limits.file_bytes_max;
  if (slot.held().bytes() > kHeldBytesMost && !urgent) return false;
  // Documents so large that one fills a file are no reason to split, because splitting does not help them.
  return slot.info().entries > limits.entries_max ||
         (slot.live_bytes() > limits.file_bytes_max && slot.live_bytes() / slot.info().entries < limits.file_bytes_max);
}

/// Loads the indexes of the slots in these cells and pins them.
Status StructureEditor::prepare(Bucket& bucket, unsigned first_cell, unsigned end_cell) {
  for (const auto& slot : bucket.slots) {
    if (slot->end_cell() <= first_cell || slot->first_cell() >= end_cell) continue;
    if (slot->rewriting) rewrites_.abandon();
    FJORD_TRY(table_.load(*slot));
    slot->pinned = true;
  }
  return Status::ok();
}

/// Makes a slot that refers to the files of the sources, with all entries that belong to the slot, including held ones.
std::unique_ptr<Slot> StructureEditor::combine(std::span<Bucket* const> sources, BucketId id, unsigned first_cell,
                                               unsigned depth, const spi::Forgotten& forgotten) {
  auto made = std::make_unique<Slot>(context_, table_.loaded(), id, first_cell, depth);
  made->set_forgotten(forgotten);
  const unsigned end_cell = first_cell + (kCells >> depth);
  std::uint64_t expected = 0;
  for (const Bucket* source : sources) {
    for (const auto& slot : source->slots) {
      if (slot->end_cell() <= first_cell || slot->first_cell() >= end_cell) continue;
      const unsigned extra_bits = id.used_bits() - std::min(id.used_bits(), source->id.used_bits());
      const unsigned extra_depth = depth - std::min(depth, slot->depth());
      expected += slot->info().entries >> (extra_bits + extra_depth);
    }
  }
  made->make_index(expected);
  for (const Bucket* source : sources) {
    for (const auto& slot : source->slots) {
      if (slot->end_cell() <= first_cell || slot->first_cell() >= end_cell) continue;
      for (const MetaEntry& entry : slot->index().entries()) {
        if (entry.file == MetaEntry::kGone || entry.held() || !made->covers(entry.gid)) continue;
        made->adopt(entry, slot->files()[entry.file]);
      }
      // Maybe only the files still have what was lost.
      if (source->waits_for_renewal(*slot)) {
        for (const FileRef& ref : slot->files()) made->keep_file(ref);
      }
      made->adopt_held(*slot);
      made->inherit_damage(*slot);
    }
  }
  if (table_.is_flushing) made->to_flush = made->held().staged.size();
  return made;
}

std::unique_ptr<Bucket> StructureEditor::combine_all(std::span<Bucket* const> sources, BucketId id, unsigned depth,
                                                     const ReplicaSet& replicas) {
  auto made = std::make_unique<Bucket>();
  made->id = id;
  made->uid = table_.take_uid();
  made->replicas = replicas;
  for (const Bucket* source : sources) {
    // The edit that replaces the sources says that the bucket is damaged.
    made->damaged = made->damage_saved = made->damaged || source->damaged;
    made->forgotten.removes = std::max(made->forgotten.removes, source->forgotten.removes);
    made->forgotten.tokens = std::max(made->forgotten.tokens, source->forgotten.tokens);
    // The part of the checksum that belongs to one half of a bucket is unknown.
    const bool is_whole = source->id.used_bits() >= id.used_bits();
    if (is_whole) made->forgotten.checksum += source->forgotten.checksum;
  }
  for (unsigned cell = 0; cell < kCells; cell += kCells >> depth) {
    made->slots.push_back(combine(sources, id, cell, depth, made->forgotten));
  }
  made->index_cells();
  // After a join, entries that only one of the sources had dropped are dropped, too.
  const bool is_join = std::all_of(sources.begin(), sources.end(),
                                   [&](const Bucket* source) { return source->id.used_bits() > id.used_bits(); });
  if (!is_join) return made;
  for (const Bucket* source : sources) made->forgotten.checksum += source->info().checksum;
  made->forgotten.checksum -= made->info().checksum;
  return made;
}

/// Replaces the slots in these cells by slots that cover 64 >> depth cells each.
Status StructureEditor::replace_slots(Bucket& bucket, unsigned first_cell, unsigned end_cell, unsigned depth) {
  FJORD_TRY(prepare(bucket, first_cell, end_cell));
  Bucket* const source = &bucket;
  std::vector<std::unique_ptr<Slot>> fresh;
  for (unsigned cell = first_cell; cell < end_cell; cell += kCells >> depth) {
    fresh.push_back(combine(std::span(&source, 1), bucket.id, cell, depth, bucket.forgotten));
  }
  const auto begin = std::find_if(bucket.slots.begin(), bucket.slots.end(),
                                  [&](const auto& slot) { return slot->first_cell() == first_cell; });
  const auto end =
      std::find_if(begin, bucket.slots.end(), [&](const auto& slot) { return slot->first_cell() >= end_cell; });
  std::vector<std::shared_ptr<SlotFile>> files;
  for (auto slot = begin; slot != end; ++slot) {
    for (const FileRef& ref : (*slot)->files()) files.push_back(ref.file);
  }
  const auto at = bucket.slots.erase(begin, end);
  bucket.slots.insert(at, std::move_iterator(fresh.begin()), std::move_iterator(fresh.end()));
  bucket.index_cells();
  const Status status = table_.commit(table_.edit_of(std::span(&source, 1)));
  table_.retired().add(files);
  table_.evict_indexes();
  return status;
}

/// Splits a slot that a batch made too large, before it grows further: a split takes longer the larger the slot is.
bool StructureEditor::split_some_slot() {
  while (!overfull_.empty()) {
    const auto found = table_.by_uid().find(*overfull_.begin());
    if (found != table_.by_uid().end()) {
      Bucket& bucket = *found->second;
      const auto full = std::find_if(bucket.slots.begin(), bucket.slots.end(),
                                     [&](const auto& slot) { return wants_split(bucket, *slot); });
      if (full != bucket.slots.end() && split_slot(bucket, **full)) return true;
    }
    overfull_.erase(overfull_.begin());
  }
  return false;
}

/// Splits a slot in two. The next step splits it further if necessary.
Status StructureEditor::split_slot(Bucket& bucket, const Slot& slot) {
  ++context_.stats.splits;
  return replace_slots(bucket, slot.first_cell(), slot.end_cell(), slot.depth() + 1);
}

Result<bool> StructureEditor::split_slot_of(Bucket& bucket) {
  const auto full = std::find_if(bucket.slots.begin(), bucket.slots.end(),
                                 [&](const auto& slot) { return wants_split(bucket, *slot); });
  if (full == bucket.slots.end()) return false;
  FJORD_TRY(split_slot(bucket, **full));
  return true;
}

/// Joins two neighbouring slots that have become small.
bool StructureEditor::join_some_slots() {
  const SlotfileLimits& limits = context_.options.limits;
  for (const auto& [uid, bucket] : table_.by_uid()) {
    const bool too_many = bucket->slots.size() > limits.slotfiles_max;
    for (std::size_t i = 0; i + 1 < bucket->slots.size(); ++i) {
      const Slot& a = *bucket->slots[i];
      const Slot& b = *bucket->slots[i + 1];
      const bool are_halves = a.depth() == b.depth() && a.first_cell() % (2 * (kCells >> a.depth())) == 0;
      if (!are_halves || a.rewriting || b.rewriting || !a.held().empty() || !b.held().empty()) continue;
      const bool sparse = a.live_bytes() + b.live_bytes() < limits.file_bytes_max / 4 &&
                          a.info().entries + b.info().entries < limits.entries_max / 4;
      if (!sparse && !too_many) continue;
      if (bucket->waits_for_renewal(a) || bucket->waits_for_renewal(b)) continue;
      ++context_.stats.joins;
      return replace_slots(*bucket, a.first_cell(), b.end_cell(), a.depth() - 1).is_ok();
    }
  }
  return false;
}

/// Replaces the buckets `sources` by `targets`, which together contain all their entries. Atomic, because it is one
/// edit.
Status StructureEditor::replace_buckets(std::span<Bucket* const> sources, std::span<const BucketId> targets) {
  unsigned depth = 0;
  for (Bucket* source : sources) {
    FJORD_TRY(prepare(*source, 0, kCells));
    depth = std::max(depth, source->depth());
  }
  ReplicaSet common = sources.front()->replicas;
  for (const Bucket* source : sources) {
    const bool is_target = std::find(targets.begin(), targets.end(), source->id) != targets.end();
    if (!is_target && source->replicas != common) common = {};
  }
  std::vector<std::unique_ptr<Bucket>> made;
  for (const BucketId target : targets) {
    const Bucket* before = table_.find(target);
    made.push_back(combine_all(sources, target, depth, before == nullptr ? common : before->replicas));
  }
  std::vector<Bucket*> raw;
  for (const auto& bucket : made) raw.push_back(bucket.get());
  Edit edit = table_.edit_of(raw);
  for (const Bucket* source : sources) {
    edit.removed.push_back(source->uid);
    Successors& successors = edit.successors.emplace_back(
        Successors{.uid = source->uid, .lsn = table_.journal().last_lsn() + 1, .buckets = {}});
    for (const Bucket* bucket : raw) successors.buckets.emplace_back(bucket->uid, bucket->id);
  }
  const std::vector<Successors> successors = edit.successors;
  FJORD_TRY(table_.commit(std::move(edit)));
  for (const Successors& of : successors) table_.add_successors(of);
  for (Bucket* source : sources) drop(*source);
  for (auto& bucket : made) table_.adopt(std::move(bucket));
  table_.evict_indexes();
  return Status::ok();
}

void StructureEditor::drop(Bucket& bucket) {
  rewrites_.abandon_of(bucket.uid);
  table_.drop(bucket);
}

Status StructureEditor::split_bucket(BucketId bucket) {
  if (bucket.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(bucket);
  Bucket* const source = table_.find(bucket);
  if (source == nullptr) return no_bucket(bucket);
  const std::array<BucketId, 2> halves = halves_of(bucket);
  if (!table_.is_ours(halves[0]) || !table_.is_ours(halves[1])) {
    return Status(StatusCode::InvalidArgument, bucket.to_string() + " has halves in different stripes");
  }
  std::vector<Bucket*> sources = {source};
  for (const BucketId half : halves) {
    if (Bucket* there = table_.find(half)) sources.push_back(there);
  }
  return replace_buckets(sources, halves);
}

Status StructureEditor::join_buckets(BucketId parent) {
  if (parent.used_bits() >= BucketId::kUsedBitsMax) return no_bit_left(parent);
  std::vector<Bucket*> sources;
  for (const BucketId half : halves_of(parent)) {
    if (Bucket* there = table_.find(half)) sources.push_back(there);
  }
  if (sources.empty()) return no_bucket(parent);
  if (Bucket* there = table_.find(parent)) sources.push_back(there);
  return replace_buckets(sources, std::span(&parent, 1));
}

}  // namespace fjord::slotfile
