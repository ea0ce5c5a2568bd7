#include "fjord/library/search.h"

#include <algorithm>
#include <utility>

#include "fjord/library/client.h"
#include "fjord/library/detail/client_core.h"
#include "fjord/rpc/search_messages.h"
#include "parameters.h"
#include "pending_writer.h"

namespace fjord {
namespace {

/// Time for a distributor's answer beyond the time limit of the search itself.
constexpr Duration kAnswerTime = seconds(2);
constexpr Duration kTimeoutMax = seconds(3600);

SearchPlace place_of(rpc::SearchHit hit) {
  return {.advertiser = hit.advertiser,
          .ad = std::move(hit.ad),
          .keyword = std::move(hit.keyword),
          .title = std::move(hit.title),
          .matched = std::move(hit.matched),
          .bid_micros = hit.bid_micros,
          .price_micros = hit.price_micros,
          .quality_ppm = hit.quality_ppm};
}

SearchedNode node_of(const rpc::SearchNode& node) {
  return {.node = NodeId::storage(node.node).to_string(),
          .slices_asked = node.asked,
          .slices_searched = node.searched,
          .keywords_compared = node.scanned,
          .keywords_matched = node.candidates,
          .took = Duration(node.took_us),
          .search_took = Duration(node.search_us),
          .status = node.status,
          .lists_found = node.list_hits,
          .lists_read = node.list_misses,
          .pages = node.pages,
          .pages_read = node.pages_read,
          .utilisation = node.utilisation_permille / 1000.0,
          .replica_class = node.replica_class,
          .share = node.share_permille / 1000.0,
          .votes = static_cast<double>(node.vote_milli) / 1000.0};
}

SearchResult result_of(rpc::SearchReply reply) {
  SearchResult result;
  result.status = std::move(reply.status);
  for (rpc::SearchHit& hit : reply.hits) result.places.push_back(place_of(std::move(hit)));
  result.state_version = reply.state_version;
  result.slices = reply.slices;
  result.slices_searched = reply.slices_searched;
  result.missing = std::move(reply.missing);
  result.keywords_matched = reply.candidates;
  result.took = Duration(reply.took_us);
  result.variants = std::move(reply.variants);
  for (const rpc::SearchNode& node : reply.nodes) result.nodes.push_back(node_of(node));
  result.choice = std::move(reply.choice);
  for (const rpc::WordPages& word : reply.words) result.word_pages.emplace(word.word, word.pages);
  return result;
}

}  // namespace

Pending<SearchResult> Client::search(SearchRequest request) {
  if (!core_->settings_error()) return failed<SearchResult>(core_->settings_error());
  if (request.timeout < Duration(0) || request.timeout > kTimeoutMax) {
    return failed<SearchResult>({StatusCode::InvalidArgument, "the timeout of a search is 0 to 3600 s"});
  }
  rpc::Search message;
  message.query = std::move(request.query);
  message.context = parameters_of(request.context);
  message.limit = request.limit;
  message.timeout_ms = static_cast<std::uint32_t>((request.timeout.count() + 999) / 1000);
  message.session = request.session;
  message.explain = request.explain;
  auto state = core_->new_pending<SearchResult>();
  const Duration timeout = std::max(core_->timeout({}), request.timeout + kAnswerTime);
  core_->client().call_any(std::move(message), timeout,
                           [done = PendingWriter<SearchResult>(state)](Result<rpc::SearchReply> reply) mutable {
                             SearchResult result;
                             if (reply) {
                               result = result_of(std::move(*reply));
                             } else {
                               result.status = reply.error();
                             }
                             done(std::move(result));
                           });
  return Pending<SearchResult>(std::move(state));
}

}  // namespace fjord
