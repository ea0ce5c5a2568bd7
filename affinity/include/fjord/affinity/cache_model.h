#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "fjord/affinity/query_log.h"

namespace fjord::affinity {

enum class Eviction {
  LeastFrequentlyUsed,  ///< Evicts the list with fewest uses since it entered; of equals, the least recently used.
  LeastRecentlyUsed,
};

/// Model of a cache of index pages: which words' lists it holds. A list enters and leaves as a whole [CALB 2019, 5].
class CacheModel {
 public:
  /// `capacity_pages` is the maximum number of pages of all lists in the cache together.
  CacheModel(std::uint64_t capacity_pages, Eviction eviction);

  bool contains(WordId word) const { return word < entries_.size() && entries_[word].uses > 0; }
  /// Uses the list of the word, which has `pages` pages. Returns whether it was in the cache. If not, the list enters,
  /// and as many lists leave as are needed to make room; their words are appended to `evicted`. A list larger than the
  /// cache never enters.
  bool use(WordId word, std::uint32_t pages, std::vector<WordId>& evicted);

  std::uint64_t pages() const { return pages_; }

 private:
  static constexpr WordId kNone = std::numeric_limits<WordId>::max();
  // Uses are counted up to this number. Lists that are used more often are ordered by their last use alone.
  static constexpr std::uint32_t kUsesMax = 1u << 20;

  // All lists in the cache form one chain: ascending by uses; lists with equally many uses ascend by their last use.
  struct Entry {
    WordId before = kNone;
    WordId after = kNone;
    std::uint32_t uses = 0;  // Number of uses; 0: the list is not in the cache.
    std::uint32_t pages = 0;
  };

  void link_after(WordId word, WordId before);
  void unlink(WordId word);
  void append_to_block(WordId word, WordId otherwise_after);

  std::uint64_t capacity_;
  std::uint32_t uses_max_;  // Uses count up to this; LeastRecentlyUsed: 1, so that the last use decides.
  std::uint64_t pages_ = 0;
  WordId first_ = kNone;
  std::vector<Entry> entries_;  // By WordId.
  std::vector<WordId> last_;    // By number of uses: the last list of the chain of that number.
};

}  // namespace fjord::affinity
