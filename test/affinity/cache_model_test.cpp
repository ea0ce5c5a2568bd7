#include "fjord/affinity/cache_model.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "fjord/common/random.h"

namespace fjord::affinity {
namespace {

/// A simple and slow model of the cache, to compare CacheModel with.
class SlowCache {
 public:
  SlowCache(std::uint64_t capacity, bool by_frequency) : capacity_(capacity), by_frequency_(by_frequency) {}

  bool use(WordId word, std::uint32_t pages, std::vector<WordId>& evicted) {
    ++now_;
    if (const auto it = lists_.find(word); it != lists_.end()) {
      ++it->second.uses;
      it->second.last_use = now_;
      return true;
    }
    if (pages > capacity_) return false;
    while (sum() + pages > capacity_) {
      const auto victim = std::min_element(lists_.begin(), lists_.end(), [&](const auto& a, const auto& b) {
        if (by_frequency_ && a.second.uses != b.second.uses) return a.second.uses < b.second.uses;
        return a.second.last_use < b.second.last_use;
      });
      evicted.push_back(victim->first);
      lists_.erase(victim);
    }
    lists_[word] = {1, now_, pages};
    return false;
  }
  bool contains(WordId word) const { return lists_.contains(word); }
  std::uint64_t sum() const {
    std::uint64_t pages = 0;
    for (const auto& [word, list] : lists_) pages += list.pages;
    return pages;
  }

 private:
  struct List {
    std::uint64_t uses;
    std::uint64_t last_use;
    std::uint32_t pages;
  };
  std::uint64_t capacity_;
  bool by_frequency_;
  std::uint64_t now_ = 0;
  std::map<WordId, List> lists_;
};

TEST_CASE("the list that was least used since it entered leaves first, of equal ones the one used longest ago") {
  CacheModel cache(4, Eviction::LeastFrequentlyUsed);
  std::vector<WordId> evicted;
  for (const WordId word : {0, 1, 2, 3, 0, 1, 0}) cache.use(word, 1, evicted);
  CHECK(evicted.empty());
  // Word 0 was used three times, word 1 twice, words 2 and 3 once each; word 2 before word 3.
  cache.use(4, 1, evicted);
  CHECK(evicted == std::vector<WordId>{2});
  cache.use(5, 3, evicted);
  CHECK(evicted == std::vector<WordId>{2, 3, 4, 1});
  CHECK(cache.contains(0));
  CHECK(cache.pages() == 4);
}

TEST_CASE("uses before a list left do not count when it enters again") {
  CacheModel cache(2, Eviction::LeastFrequentlyUsed);
  std::vector<WordId> evicted;
  for (const WordId word : {0, 0, 0}) cache.use(word, 1, evicted);
  cache.use(1, 2, evicted);
  CHECK(evicted == std::vector<WordId>{0});
  cache.use(0, 1, evicted);
  cache.use(2, 1, evicted);
  cache.use(2, 1, evicted);
  cache.use(3, 1, evicted);
  CHECK(evicted == std::vector<WordId>{0, 1, 0});
}

TEST_CASE("with LRU the list used longest ago leaves, however often it was used") {
  CacheModel cache(2, Eviction::LeastRecentlyUsed);
  std::vector<WordId> evicted;
  for (const WordId word : {0, 0, 0, 1, 2}) cache.use(word, 1, evicted);
  CHECK(evicted == std::vector<WordId>{0});
}

TEST_CASE("a list enters as a whole, with as few evictions as make room, or never if it is larger than the cache") {
  CacheModel cache(10, Eviction::LeastFrequentlyUsed);
  std::vector<WordId> evicted;
  for (const WordId word : {0, 1, 2}) cache.use(word, 3, evicted);
  CHECK_FALSE(cache.use(3, 4, evicted));
  CHECK(evicted == std::vector<WordId>{0});
  CHECK(cache.pages() == 10);
  CHECK_FALSE(cache.use(4, 11, evicted));
  CHECK_FALSE(cache.contains(4));
  CHECK(evicted.size() == 1);
}

TEST_CASE("a cache does what one that is told slowly does") {
  for (const Eviction eviction : {Eviction::LeastFrequentlyUsed, Eviction::LeastRecentlyUsed}) {
    Random random(3);
    CacheModel cache(60, eviction);
    SlowCache slow(60, eviction == Eviction::LeastFrequentlyUsed);
    for (int i = 0; i < 5000; ++i) {
      const auto word = static_cast<WordId>(random.below(1 + random.below(60)));
      std::vector<WordId> evicted;
      std::vector<WordId> expected;
      const std::uint32_t pages = 1 + word % 7;
      REQUIRE(cache.use(word, pages, evicted) == slow.use(word, pages, expected));
      REQUIRE(evicted == expected);
      REQUIRE(cache.pages() == slow.sum());
    }
    for (WordId word = 0; word < 60; ++word) CHECK(cache.contains(word) == slow.contains(word));
  }
}

}  // namespace
}  // namespace fjord::affinity
