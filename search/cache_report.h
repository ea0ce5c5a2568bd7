#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "fjord/affinity/cache_changes.h"
#include "fjord/rpc/search_messages.h"

namespace fjord::search {

/// Returns what a storage node reports to a broker about the cache of one stripe: the changes that the broker has not
/// received. If some of these are not kept, or the broker knows another process, it has to forget all and gets the kept
/// ones.
rpc::CacheReport cache_report(std::uint32_t stripe, std::uint64_t incarnation, const affinity::CacheChanges& changes,
                              const std::vector<rpc::CacheHeard>& heard);

/// What a broker believes to be in the caches of one storage node. The contents of the caches bound its memory.
class CacheShadow {
 public:
  /// Applies the changes of a report. Reports may arrive out of order; older changes are ignored.
  void apply(const rpc::CacheReport& report);
  /// Returns how far the changes of each stripe were received, for the next question to the node.
  std::vector<rpc::CacheHeard> heard() const;
  /// Returns the number of stripes that have a list of the word in their cache.
  std::uint32_t stripes_with(affinity::WordId word) const;
  std::size_t words() const;

 private:
  struct Stripe {
    std::uint64_t incarnation = 0;
    std::uint64_t next = 0;
    std::unordered_set<affinity::WordId> words;
  };
  std::map<std::uint32_t, Stripe> stripes_;
};

}  // namespace fjord::search
