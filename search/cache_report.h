#pragma once

#include <cstdint>
#include <map>
#include <unordered_set>
#include <vector>

#include "fjord/affinity/cache_changes.h"
#include "fjord/rpc/search_messages.h"

namespace fjord::search {

/// What a storage node tells a broker of the cache of one stripe: the changes that it has not heard of. If some of them
/// are not kept, or it knows another process, it is told to forget, and gets those that are.
rpc::CacheReport cache_report(std::uint32_t stripe, std::uint64_t incarnation, const affinity::CacheChanges& changes,
                              const std::vector<rpc::CacheHeard>& heard);

/// What a broker believes to be in the caches of one storage node. Its memory is bounded by what the caches hold.
class CacheShadow {
 public:
  /// Answers may come in another order than the changes that they tell; what is old is passed over.
  void apply(const rpc::CacheReport& report);
  /// What the next question says.
  std::vector<rpc::CacheHeard> heard() const;
  /// Number of stripes that have a list of the word in their cache.
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
