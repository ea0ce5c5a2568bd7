#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "fjord/search/auction.h"

namespace fjord::search {

/// A search in one process that looks at every keyword, without an index. The answers of a cluster have to equal its
/// own.
class ReferenceSearch {
 public:
  void put(const GlobalId& gid, SearchDocument document);
  void remove(const GlobalId& gid);
  std::size_t size() const { return documents_.size(); }
  const std::map<GlobalId, SearchDocument>& documents() const { return documents_; }

  /// Returns the first `places` places with their prices. With `hits_max`: the hits of that many best advertisers
  /// without prices, as a node returns them.
  std::vector<Hit> search(std::span<const QueryVariant> variants, const SearchContext& context, std::size_t places,
                          std::int64_t reserve_micros) const;

 private:
  std::map<GlobalId, SearchDocument> documents_;
};

}  // namespace fjord::search
