#include "slot_index.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace fjord::slotfile {

void SlotIndex::reserve(std::size_t count) {
  if (count > entries_.capacity()) entries_.reserve(std::max(count, entries_.capacity() + entries_.capacity() / 2));
  if (count * 4 <= table_.size() * 3) return;
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(16, count * 4 / 3 + 1));
  table_.assign(size, kNone);
  table_.shrink_to_fit();
  shift_ = 64U - static_cast<unsigned>(std::countr_zero(size));
  for (std::uint32_t i = 0; i < entries_.size(); ++i) place(i);
}

bool SlotIndex::sort() {
  const auto before = [](const MetaEntry& a, const MetaEntry& b) {
    return std::tie(a.file, a.header_position) < std::tie(b.file, b.header_position);
  };
  if (std::is_sorted(entries_.begin(), entries_.end(), before)) return false;
  std::erase_if(entries_, [](const MetaEntry& entry) { return entry.file == MetaEntry::kGone; });
  std::sort(entries_.begin(), entries_.end(), before);
  std::fill(table_.begin(), table_.end(), kNone);
  for (std::uint32_t i = 0; i < entries_.size(); ++i) place(i);
  return true;
}

void SlotIndex::place(std::uint32_t number) {
  std::size_t at = home(entries_[number].gid);
  while (table_[at] != kNone) at = (at + 1) & (table_.size() - 1);
  table_[at] = number;
}

std::uint32_t SlotIndex::find_any(const GlobalId& gid) const {
  if (table_.empty()) return kNone;
  for (std::size_t at = home(gid); table_[at] != kNone; at = (at + 1) & (table_.size() - 1)) {
    if (entries_[table_[at]].gid == gid) return table_[at];
  }
  return kNone;
}

std::uint32_t SlotIndex::insert(const MetaEntry& entry) {
  ++live_;
  if (const std::uint32_t gone = find_any(entry.gid); gone != kNone) {
    entries_[gone] = entry;
    return gone;
  }
  reserve(entries_.size() + 1);
  const auto number = static_cast<std::uint32_t>(entries_.size());
  entries_.push_back(entry);
  place(number);
  return number;
}

}  // namespace fjord::slotfile
