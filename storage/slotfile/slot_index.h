#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "file_format.h"

namespace fjord::slotfile {

/// The newest metadata entry of each document id in one slot: an array of entries, and an open-addressing table of
/// their numbers. Takes about 50 bytes for each entry. Numbers stay the same until the index is sorted or destroyed.
///
/// Threading: confined to its slot.
class SlotIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  void reserve(std::size_t count);
  /// Returns the number of the entry, or kNone. Erased entries are not found.
  std::uint32_t find(const GlobalId& gid) const {
    const std::uint32_t number = find_any(gid);
    return number == kNone || entries_[number].file == MetaEntry::kGone ? kNone : number;
  }
  // Hints that find() of this id follows soon. The index of a store is larger than the processor's caches, and waits
  // for memory are most of what find() takes; a caller with many ids lets the processor wait for several at once: first
  // prefetch_place() of all, then prefetch_entry() of all. Always inlined: g++ removes calls of a function that only
  // prefetches, as it takes them to have no effect.
  [[gnu::always_inline]] void prefetch_place(const GlobalId& gid) const {
    if (!table_.empty()) __builtin_prefetch(&table_[home(gid)]);
  }
  [[gnu::always_inline]] void prefetch_entry(const GlobalId& gid) const {
    if (table_.empty()) return;
    const std::uint32_t number = table_[home(gid)];
    if (number != kNone) __builtin_prefetch(&entries_[number]);
  }

  /// Adds an entry whose id is not in the index. Returns its number.
  std::uint32_t insert(const MetaEntry& entry);
  /// Erases the entry. Its number is not used for another id.
  void erase(std::uint32_t number) {
    entries_[number].file = MetaEntry::kGone;
    --live_;
  }

  /// Removes the erased entries and sorts the others by file and position, which changes numbers. Returns false if they
  /// were sorted already and nothing changed.
  bool sort();

  MetaEntry& at(std::uint32_t number) { return entries_[number]; }
  const MetaEntry& at(std::uint32_t number) const { return entries_[number]; }
  /// Returns all entries, including erased ones, whose file is kGone.
  std::span<const MetaEntry> entries() const { return entries_; }
  /// Returns the number of entries, without erased ones.
  std::size_t size() const { return live_; }
  std::size_t memory_bytes() const {
    return entries_.capacity() * sizeof(MetaEntry) + table_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::uint32_t find_any(const GlobalId& gid) const;
  std::size_t home(const GlobalId& gid) const {
    // Multiplicative hashing: all documents of a slot have some bits of their ids in common, but the high bits of the
    // product differ.
    return static_cast<std::size_t>(((gid.hash_bits() ^ gid.location_bits()) * 0x9e3779b97f4a7c15ULL) >> shift_);
  }
  void place(std::uint32_t number);

  std::vector<MetaEntry> entries_;
  /// Entry numbers, or kNone for free places. The size is a power of two; at most three quarters are used.
  std::vector<std::uint32_t> table_;
  unsigned shift_ = 64;  ///< A hash is shifted by 64 - log2(size of table_) bits.
  std::size_t live_ = 0;
};

}  // namespace fjord::slotfile
