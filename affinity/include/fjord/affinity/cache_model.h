#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "fjord/affinity/query_log.h"

namespace fjord::affinity {

enum class Eviction {
  LeastFrequentlyUsed,  ///< Least used since it entered the cache; of several, the one whose last use is longest ago.
  LeastRecentlyUsed,
};

/// Model of a cache of index pages: the lists that it holds. A list enters and leaves as a whole [CALB 2019, 5].
class CacheModel {
 public:
  /// `capacity_pages`: what the lists in the cache have at most together.
  CacheModel(std::uint64_t capacity_pages, Eviction eviction);

  bool contains(WordId word) const { return word < entries_.size() && entries_[word].uses > 0; }
  /// Uses the list of the word, of `pages` pages, and returns whether it was in the cache. If not, it enters, and just
  /// as many lists leave as make room for it; they are appended to `evicted`. A list larger than the cache never
  /// enters.
  bool use(WordId word, std::uint32_t pages, std::vector<WordId>& evicted);

  std::uint64_t pages() const { return pages_; }

 private:
  static constexpr WordId kNone = std::numeric_limits<WordId>::max();
  // Uses are counted up to this number. Lists that are used more often are ordered by their last use alone.
  static constexpr std::uint32_t kUsesMax = 1u << 20;

  // All lists in the cache are in one chain: ascending by uses, and among equal ones by their last use.
  struct Entry {
    WordId before = kNone;
    WordId after = kNone;
    std::uint32_t uses = 0;  // 0: not in the cache.
    std::uint32_t pages = 0;
  };

  void link_after(WordId word, WordId before);
  void unlink(WordId word);
  void append_to_block(WordId word, WordId otherwise_after);

  std::uint64_t capacity_;
  std::uint32_t uses_max_;  // 1 for LeastRecentlyUsed: then all lists are in one block.
  std::uint64_t pages_ = 0;
  WordId first_ = kNone;
  std::vector<Entry> entries_;  // By WordId.
  std::vector<WordId> last_;    // By uses: the last list of those that were used as often.
};

}  // namespace fjord::affinity
