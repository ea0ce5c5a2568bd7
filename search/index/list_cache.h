#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>

#include "fjord/affinity/cache_changes.h"
#include "fjord/common/hash.h"

namespace fjord::search {

/// Bytes read from segments, kept while they fit: whole posting lists, and runs of documents. The least recently used
/// ones leave. Which words entered and left is kept with numbers, so that brokers can be told.
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
  /// The number of a word in changes(): the low bits of its hash. 0 stands for no word.
  static affinity::WordId word_id(std::string_view word) { return static_cast<affinity::WordId>(hash64(word) | 1); }

  explicit ListCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Null if it is not there.
  Bytes find(const Key& key);
  /// Takes what does not exceed the whole cache. `word`: see word_id(); 0 for a run of documents.
  void add(const Key& key, Bytes bytes, affinity::WordId word);
  void forget_segment(std::uint64_t segment);
  std::size_t bytes() const { return bytes_; }
  /// A word enters with its first list of a segment, and leaves with the last one.
  const affinity::CacheChanges& changes() const { return changes_; }

 private:
  struct Entry {
    Key key;
    Bytes bytes;
    affinity::WordId word = 0;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return mix64(key.segment, key.offset); }
  };
  using Entries = std::list<Entry>;

  void drop(Entries::iterator at);

  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Entries entries_;  // The most recently used first.
  std::unordered_map<Key, Entries::iterator, KeyHash> by_key_;
  std::unordered_map<affinity::WordId, std::uint32_t> lists_;  // Lists of a word that are here.
  affinity::CacheChanges changes_{4096};
};

}  // namespace fjord::search
