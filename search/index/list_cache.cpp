#include "list_cache.h"

#include <iterator>

namespace fjord::search {
namespace {

constexpr std::size_t kEntryBytes = 160;  // Approximate memory of an entry without its bytes.

}  // namespace

ListCache::Bytes ListCache::find(const Key& key) {
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return nullptr;
  auto node = entries_.extract(at->second);
  node.key() = rank_after(node.key().first);
  at->second = entries_.insert(std::move(node)).position;
  return at->second->second.bytes;
}

void ListCache::add(const Key& key, Bytes bytes, affinity::WordId word) {
  const std::size_t size = bytes->size() + kEntryBytes;
  if (size > limits_.bytes_max || by_key_.contains(key)) return;
  // Evicts before the entry is added. Otherwise a new entry, used once, would be evicted before entries used more.
  make_room(size);
  bytes_ += size;
  by_key_.emplace(key, entries_.emplace(rank_after(0), Entry{key, std::move(bytes), word}).first);
  if (word != 0 && ++lists_[word] == 1) changes_.add({word, true});
}

void ListCache::make_room(std::size_t bytes) {
  while (!entries_.empty() && bytes_ + bytes > limits_.bytes_max) drop(entries_.begin());
}

void ListCache::set_limits(Limits limits) {
  limits_ = limits;
  make_room(0);
}

void ListCache::forget_segment(std::uint64_t segment) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (at->second.key.segment == segment) drop(at);
    at = next;
  }
}

void ListCache::drop(Entries::iterator at) {
  const Entry& entry = at->second;
  if (entry.word != 0 && --lists_[entry.word] == 0) {
    lists_.erase(entry.word);
    changes_.add({entry.word, false});
  }
  bytes_ -= entry.bytes->size() + kEntryBytes;
  by_key_.erase(entry.key);
  entries_.erase(at);
}

}  // namespace fjord::search
