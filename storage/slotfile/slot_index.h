#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "slotfile_format.h"

namespace fjord::slotfile {

/// The newest metadata entry of each document id in one slotfile: the entries in a row, and an open addressing table of
/// their numbers. About 50 bytes an entry. Numbers stay the same until the index is destroyed.
///
/// Threading: confined to its slotfile.
class SlotIndex {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  /// Makes insert() free of allocation until there are `count` entries.
  void reserve(std::size_t count);
  /// The number of the entry, or kNone.
  std::uint32_t find(const GlobalId& gid) const;
  /// The id is not there yet, and reserve() covered it. Returns the entry's number.
  std::uint32_t insert(const MetaEntry& entry);
  /// Takes back the latest insert(); nothing was reserved in between.
  void remove_last();

  MetaEntry& at(std::uint32_t number) { return entries_[number]; }
  const MetaEntry& at(std::uint32_t number) const { return entries_[number]; }
  std::span<const MetaEntry> entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  std::size_t memory_bytes() const {
    return entries_.capacity() * sizeof(MetaEntry) + table_.capacity() * sizeof(std::uint32_t);
  }

 private:
  std::size_t home(const GlobalId& gid) const;
  void place(std::uint32_t number);

  std::vector<MetaEntry> entries_;
  std::vector<std::uint32_t> table_;  ///< Numbers or kNone; a power of two, at most three quarters full.
  unsigned shift_ = 64;               ///< 64 - log2(table size)
};

}  // namespace fjord::slotfile
