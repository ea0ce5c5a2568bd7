#include "inspect_versions.h"

#include <fmt/format.h>

namespace fjord::slotfile {

void NewestVersions::set_structure(const Catalog& catalog) {
  buckets_ = catalog.buckets;
  successors_ = catalog.successors;
  for (const auto& [uid, bucket] : buckets_) {
    first_slot_[uid] = slots_.size();
    for (const SlotRecord& slot : bucket.slots) {
      for (const FileShare& share : slot.files) shares_[share.number].push_back({slots_.size(), share});
      slots_.push_back({.uid = uid, .bucket = bucket.id, .record = slot, .found = {}, .in_journal = false});
    }
  }
}

std::set<std::uint32_t> NewestVersions::referred_to() const {
  std::set<std::uint32_t> files;
  for (const auto& [number, shares] : shares_) files.insert(number);
  return files;
}

const NewestVersions::OfSlot* NewestVersions::owner(std::uint32_t file, const GlobalId& gid) const {
  const auto found = shares_.find(file);
  if (found == shares_.end()) return nullptr;
  const unsigned cell = cell_of(gid);
  for (const Share& of_file : found->second) {
    const FileShare& share = of_file.share;
    if (cell >= share.first_cell && cell < share.end_cell && bucket_of(gid, share.bucket.used_bits()) == share.bucket) {
      return &slots_[of_file.slot];
    }
  }
  return nullptr;
}

/// Returns the bucket with this uid, or that of its successors which contains `gid`. Null if the bucket was deleted.
const BucketRecord* NewestVersions::successor(std::uint64_t uid, const GlobalId& gid) const {
  if (const auto found = buckets_.find(uid); found != buckets_.end()) return &found->second;
  const auto successors = successors_.find(uid);
  if (successors == successors_.end()) return nullptr;
  for (const auto& [next, id] : successors->second.buckets) {
    // A bucket has a higher uid than the buckets that it replaces. The check prevents a cycle in damaged data.
    if (next > uid && bucket_of(gid, id.used_bits()) == id) return successor(next, gid);
  }
  return nullptr;
}

void NewestVersions::add_entry(std::uint32_t file, const MetaEntry& entry) {
  const OfSlot* slot = owner(file, entry.gid);
  if (slot == nullptr && !shares_.empty()) return;
  std::uint64_t& newest = newest_[{slot == nullptr ? 0 : slot->uid, entry.gid}];
  newest = std::max(newest, entry.timestamp_us);
}

void NewestVersions::add_write(std::uint64_t uid, const GlobalId& gid, std::uint64_t timestamp_us) {
  const BucketRecord* bucket = successor(uid, gid);
  if (bucket == nullptr) return;
  std::uint64_t& newest = newest_[{bucket->uid, gid}];
  newest = std::max(newest, timestamp_us);
  const unsigned cell = cell_of(gid);
  for (std::size_t i = first_slot_.at(bucket->uid); i < slots_.size() && slots_[i].uid == bucket->uid; ++i) {
    const SlotRecord& slot = slots_[i].record;
    if (cell >= slot.first_cell && cell < slot.first_cell + (kCells >> slot.depth)) slots_[i].in_journal = true;
  }
}

void NewestVersions::judge(std::uint32_t file, const MetaEntry& entry, EntryReport& report) {
  const OfSlot* slot = owner(file, entry.gid);
  report.state = EntryState::Unused;
  if (slot == nullptr && !shares_.empty()) return;
  const auto newest = newest_.find({slot == nullptr ? 0 : slot->uid, entry.gid});
  const bool counts = newest == newest_.end() || newest->second <= entry.timestamp_us;
  report.state = counts ? EntryState::Newest : EntryState::Replaced;
  if (slot == nullptr) return;
  report.bucket = slot->bucket;
  if (!counts || entry.is_void()) return;
  const spi::Forgotten& forgotten = buckets_.at(slot->uid).forgotten;
  if (entry.removed() && forgotten.covers(entry.timestamp(), entry.is_token())) {
    report.state = EntryState::Forgotten;
    return;
  }
  BucketInfo& found = slots_[static_cast<std::size_t>(slot - slots_.data())].found;
  ++found.entries;
  if (!entry.removed()) ++found.documents;
  found.bytes += entry.document_bytes();
  found.checksum += spi::entry_hash(entry.gid, entry.timestamp(), entry.removed());
}

void NewestVersions::judge_write(std::uint64_t uid, EntryReport& report) const {
  const BucketRecord* bucket = successor(uid, report.gid);
  report.state = EntryState::Unused;
  if (bucket == nullptr) return;
  report.bucket = bucket->id;
  const auto newest = newest_.find({bucket->uid, report.gid});
  const bool counts = newest == newest_.end() || newest->second <= report.timestamp_us;
  report.state = counts ? EntryState::Newest : EntryState::Replaced;
}

void NewestVersions::compare_with_catalog(const std::string& catalog_path, FindingSink& sink) const {
  for (const OfSlot& slot : slots_) {
    const BucketInfo& expected = slot.record.info;
    const bool same = slot.found.entries == expected.entries && slot.found.documents == expected.documents &&
                      slot.found.bytes == expected.bytes && slot.found.checksum == expected.checksum;
    if (slot.in_journal || same) continue;
    sink.problem(catalog_path, 0,
                 fmt::format("{}, cells {} to {}: {} entries with checksum {:#x} are expected in its slotfiles, and {} "
                             "with checksum {:#x} are there",
                             slot.bucket.to_string(), slot.record.first_cell,
                             slot.record.first_cell + (kCells >> slot.record.depth) - 1, expected.entries,
                             expected.checksum, slot.found.entries, slot.found.checksum));
  }
}

}  // namespace fjord::slotfile
