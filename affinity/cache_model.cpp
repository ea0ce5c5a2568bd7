#include "fjord/affinity/cache_model.h"

#include <algorithm>

namespace fjord::affinity {

CacheModel::CacheModel(std::uint64_t capacity_pages, Eviction eviction)
    : capacity_(capacity_pages), uses_max_(eviction == Eviction::LeastRecentlyUsed ? 1 : kUsesMax), last_(2, kNone) {}

void CacheModel::link_after(WordId word, WordId before) {
  Entry& entry = entries_[word];
  entry.before = before;
  entry.after = before == kNone ? first_ : entries_[before].after;
  (before == kNone ? first_ : entries_[before].after) = word;
  if (entry.after != kNone) entries_[entry.after].before = word;
}

void CacheModel::unlink(WordId word) {
  const Entry& entry = entries_[word];
  if (last_[entry.uses] == word) {
    const bool alone = entry.before == kNone || entries_[entry.before].uses != entry.uses;
    last_[entry.uses] = alone ? kNone : entry.before;
  }
  (entry.before == kNone ? first_ : entries_[entry.before].after) = entry.after;
  if (entry.after != kNone) entries_[entry.after].before = entry.before;
}

void CacheModel::append_to_block(WordId word, WordId otherwise_after) {
  const std::uint32_t uses = entries_[word].uses;
  if (last_.size() <= uses) last_.resize(uses + 1, kNone);
  link_after(word, last_[uses] != kNone ? last_[uses] : otherwise_after);
  last_[uses] = word;
}

bool CacheModel::use(WordId word, std::uint32_t pages, std::vector<WordId>& evicted) {
  if (word >= entries_.size()) entries_.resize(word + 1);
  if (entries_[word].uses > 0) {
    const std::uint32_t uses = entries_[word].uses;
    const WordId before = entries_[word].before;
    unlink(word);
    entries_[word].uses = std::min(uses + 1, uses_max_);
    // If no other list has as many uses now, the list stays where it was, behind the lists with one use less.
    append_to_block(word, last_[uses] != kNone ? last_[uses] : before);
    return true;
  }
  if (pages > capacity_) return false;
  while (pages_ + pages > capacity_) {
    const WordId victim = first_;
    unlink(victim);
    pages_ -= entries_[victim].pages;
    entries_[victim].uses = 0;
    evicted.push_back(victim);
  }
  entries_[word].uses = 1;
  entries_[word].pages = pages;
  pages_ += pages;
  append_to_block(word, kNone);
  return false;
}

}  // namespace fjord::affinity
