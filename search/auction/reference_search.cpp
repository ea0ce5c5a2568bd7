#include "fjord/search/reference_search.h"

#include <algorithm>
#include <utility>

namespace fjord::search {

void ReferenceSearch::put(const GlobalId& gid, SearchDocument document) {
  documents_.insert_or_assign(gid, std::move(document));
}

void ReferenceSearch::remove(const GlobalId& gid) { documents_.erase(gid); }

std::vector<Hit> ReferenceSearch::search(std::span<const QueryVariant> variants, const SearchContext& context,
                                         std::size_t places, std::int64_t reserve_micros) const {
  std::map<std::uint64_t, GroupMembers> groups;
  for (const auto& [gid, document] : documents_) {
    if (document.role == IndexRole::Group) {
      // If a group has several documents, the one with the lowest gid counts, as in an index.
      GroupMembers& members = groups[document.group];
      if (!members.group) members.group = GroupData::decode(document.payload);
    } else if (document.role == IndexRole::Ad) {
      if (const auto ad = AdData::decode(document.payload)) groups[document.group].add_ad(gid, *ad);
    }
  }
  Auction auction(variants, context, reserve_micros);
  for (const auto& [gid, document] : documents_) {
    if (document.role != IndexRole::Keyword) continue;
    const auto found = std::find_if(
        variants.begin(), variants.end(),
        [&, &keyword = document](const QueryVariant& one) { return matches(keyword.kind, keyword.words, one); });
    if (found == variants.end()) continue;
    const auto data = KeywordData::decode(document.payload);
    if (!data) continue;
    auction.add(gid, document.words, document.kind, static_cast<std::size_t>(found - variants.begin()), *data,
                groups[document.group]);
  }
  return merge_hits(auction.best(auction.candidates()), places, reserve_micros);
}

}  // namespace fjord::search
