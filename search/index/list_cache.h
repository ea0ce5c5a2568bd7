#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "fjord/affinity/cache_changes.h"
#include "fjord/affinity/cache_model.h"
#include "fjord/common/hash.h"

namespace fjord::search {

/// Bytes read from segments, kept while they fit: whole posting lists, and runs of documents. It numbers the words that
/// entered and left, for reports to brokers.
///
/// Threading: confined to its owner.
class ListCache {
 public:
  using Bytes = std::shared_ptr<const std::string>;
  struct Key {
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Limits {
    std::size_t bytes_max = 0;
    affinity::Eviction eviction = affinity::Eviction::LeastRecentlyUsed;
  };
  /// Returns the number of a word in changes(): the low bits of its hash. 0 stands for no word.
  static affinity::WordId word_id(std::string_view word) { return static_cast<affinity::WordId>(hash64(word) | 1); }

  explicit ListCache(Limits limits) : limits_(limits) {}

  /// Returns null if the cache does not have the key.
  Bytes find(const Key& key);
  /// Adds bytes, unless they exceed the whole cache. `word`: see word_id(); 0 for a run of documents.
  void add(const Key& key, Bytes bytes, affinity::WordId word);
  void forget_segment(std::uint64_t segment);
  /// Sets new limits; entries that exceed them are evicted at once.
  void set_limits(Limits limits);
  std::size_t bytes() const { return bytes_; }
  /// Returns the words that entered or left. A word enters with its first list of a segment, and leaves with the last
  /// one.
  const affinity::CacheChanges& changes() const { return changes_; }

 private:
  /// Order of eviction, least first: by uses since the entry was added (all equal with LeastRecentlyUsed), then last
  /// use.
  using Rank = std::pair<std::uint64_t, std::uint64_t>;
  struct Entry {
    Key key;
    Bytes bytes;
    affinity::WordId word = 0;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return mix64(key.segment, key.offset); }
  };
  using Entries = std::map<Rank, Entry>;

  Rank rank_after(std::uint64_t uses) {
    return {limits_.eviction == affinity::Eviction::LeastRecentlyUsed ? 0 : uses + 1, ++last_use_};
  }
  void drop(Entries::iterator at);
  void make_room(std::size_t bytes);

  Limits limits_;
  std::size_t bytes_ = 0;
  std::uint64_t last_use_ = 0;
  Entries entries_;
  std::unordered_map<Key, Entries::iterator, KeyHash> by_key_;
  std::unordered_map<affinity::WordId, std::uint32_t> lists_;  // Number of lists in the cache, by word.
  affinity::CacheChanges changes_{4096};
};

}  // namespace fjord::search
