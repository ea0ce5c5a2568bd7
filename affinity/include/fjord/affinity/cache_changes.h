#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fjord/affinity/query_log.h"

namespace fjord::affinity {

struct CacheChange {
  WordId word = 0;
  bool entered = false;  ///< True: the word entered the cache; false: it left.
};

/// The latest words that entered or left the cache of a replica, in order and numbered from 0. A broker asks for the
/// changes from a number on. So an answer also tells it what queries of other brokers changed.
class CacheChanges {
 public:
  explicit CacheChanges(std::size_t limit) : ring_(limit) {}

  void add(CacheChange change) { ring_[next_++ % ring_.size()] = change; }
  /// Returns the number that the next change gets.
  std::uint64_t next() const { return next_; }
  /// Returns the number of the oldest change that is kept.
  std::uint64_t first() const { return next_ - std::min<std::uint64_t>(next_, ring_.size()); }
  /// Calls `apply` with each change from number `first` on. If some of these are no longer kept, returns false and
  /// calls nothing: the broker then has to forget what it believed about the cache.
  template <typename Apply>
  bool for_each_from(std::uint64_t first, Apply&& apply) const {
    if (first > next_ || next_ - first > ring_.size()) return false;
    for (std::uint64_t number = first; number < next_; ++number) apply(ring_[number % ring_.size()]);
    return true;
  }

 private:
  std::vector<CacheChange> ring_;
  std::uint64_t next_ = 0;
};

}  // namespace fjord::affinity
