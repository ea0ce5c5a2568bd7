#include "list_cache.h"

#include <utility>

namespace fjord::search {
namespace {

constexpr std::size_t kEntryBytes = 160;  // What an entry takes beside its bytes, about.

}  // namespace

ListCache::Bytes ListCache::find(const Key& key) {
  const auto at = by_key_.find(key);
  if (at == by_key_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->bytes;
}

void ListCache::add(const Key& key, Bytes bytes, affinity::WordId word) {
  const std::size_t size = bytes->size() + kEntryBytes;
  if (size > bytes_max_ || by_key_.contains(key)) return;
  bytes_ += size;
  entries_.push_front({key, std::move(bytes), word});
  by_key_.emplace(key, entries_.begin());
  if (word != 0 && ++lists_[word] == 1) changes_.add({word, true});
  while (bytes_ > bytes_max_) drop(std::prev(entries_.end()));
}

void ListCache::forget_segment(std::uint64_t segment) {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto next = std::next(at);
    if (at->key.segment == segment) drop(at);
    at = next;
  }
}

void ListCache::drop(Entries::iterator at) {
  if (at->word != 0 && --lists_[at->word] == 0) {
    lists_.erase(at->word);
    changes_.add({at->word, false});
  }
  bytes_ -= at->bytes->size() + kEntryBytes;
  by_key_.erase(at->key);
  entries_.erase(at);
}

}  // namespace fjord::search
