#include "wire.h"

#include <utility>

namespace fjord::search {

rpc::SearchHit to_message(Hit hit) {
  return {.advertiser = hit.advertiser,
          .score = hit.score,
          .quality_ppm = hit.quality_ppm,
          .bid_micros = hit.bid_micros,
          .price_micros = hit.price_micros,
          .keyword = std::move(hit.keyword_id),
          .ad = std::move(hit.ad_id),
          .title = std::move(hit.title),
          .matched = std::move(hit.matched),
          .keyword_gid = hit.keyword,
          .ad_gid = hit.ad};
}

Hit from_message(rpc::SearchHit hit) {
  return {.advertiser = hit.advertiser,
          .score = hit.score,
          .quality_ppm = hit.quality_ppm,
          .bid_micros = hit.bid_micros,
          .keyword = hit.keyword_gid,
          .ad = hit.ad_gid,
          .keyword_id = std::move(hit.keyword),
          .ad_id = std::move(hit.ad),
          .title = std::move(hit.title),
          .matched = std::move(hit.matched),
          .price_micros = hit.price_micros};
}

Result<SearchContext> context_of(const std::vector<rpc::Parameter>& parameters) {
  std::map<std::string, std::string> pairs;
  for (const rpc::Parameter& one : parameters) {
    if (!pairs.emplace(one.name, one.value).second) {
      return Status(StatusCode::InvalidArgument, "context " + one.name + " is given twice");
    }
  }
  return SearchContext::parse(pairs);
}

}  // namespace fjord::search
