// /search/v1: searches for ads.

#include <fmt/format.h>
#include <utility>

#include "fjord/library/detail/client_core.h"
#include "fjord/library/search.h"
#include "http/json_shape.h"
#include "http/own_api.h"

namespace fjord::gateway {
namespace {

constexpr double kTimeoutMax = 3600;
constexpr std::uint64_t kPlacesMax = 100;
constexpr Duration kTypesTimeout = seconds(2);

Status wrong_member(std::string_view member, const std::string& expected) {
  return {StatusCode::InvalidArgument, fmt::format("the body: \"{}\": expected {}", member, expected)};
}

Result<SearchRequest> read_search(const std::string& body) {
  SearchRequest request;
  std::uint64_t limit = request.limit;
  double timeout = 0;
  FJORD_TRY(read_json(body, JsonShape()
                                .text("query", request.query)
                                .text_map("context", request.context)
                                .count("limit", limit)
                                .number("timeout_seconds", timeout)
                                .flag("session", request.session)
                                .flag("explain", request.explain)
                                .required("query")));
  if (limit < 1 || limit > kPlacesMax) return wrong_member("limit", fmt::format("1 to {}", kPlacesMax));
  if (!(timeout >= 0 && timeout <= kTimeoutMax))
    return wrong_member("timeout_seconds", fmt::format("0 to {}", kTimeoutMax));
  request.limit = static_cast<std::uint32_t>(limit);
  request.timeout = Duration(static_cast<std::int64_t>(timeout * 1e6));
  return request;
}

void write_place(const SearchPlace& place, JsonText& json) {
  json.begin_object().member("advertiser", place.advertiser).member("ad", place.ad).member("keyword", place.keyword);
  json.member("title", place.title).member("matched", place.matched).member("bid_micros", place.bid_micros);
  json.member("price_micros", place.price_micros).member("quality_ppm", place.quality_ppm).end_object();
}

void write_searched_node(const SearchedNode& node, JsonText& json) {
  json.begin_object().member("node", node.node).member("slices_asked", node.slices_asked);
  json.member("slices_searched", node.slices_searched).member("keywords_compared", node.keywords_compared);
  json.member("keywords_matched", node.keywords_matched).seconds("took_seconds", node.took);
  json.seconds("search_took_seconds", node.search_took);
  if (!node.status) write_error("error", node.status, json);
  json.member("lists_found", node.lists_found).member("lists_read", node.lists_read).member("pages", node.pages);
  json.member("pages_read", node.pages_read).member("utilisation", node.utilisation);
  json.member("replica_class", node.replica_class).member("share", node.share).member("votes", node.votes);
  json.end_object();
}

std::string text_of(const SearchResult& result, bool explain) {
  JsonText json;
  json.begin_object().member("complete", result.is_complete()).key("places").begin_array();
  for (const SearchPlace& place : result.places) write_place(place, json);
  json.end_array().member("state_version", result.state_version).member("slices", result.slices);
  json.member("slices_searched", result.slices_searched);
  if (result.missing) {
    json.key("missing").null();
  } else {
    write_error("missing", result.missing, json);
  }
  json.member("keywords_matched", result.keywords_matched).seconds("took_seconds", result.took);
  json.member("variants", result.variants);
  if (explain) {
    json.key("nodes").begin_array();
    for (const SearchedNode& node : result.nodes) write_searched_node(node, json);
    json.end_array().member("choice", result.choice).key("word_pages").begin_object();
    for (const auto& [word, pages] : result.word_pages) json.member(word, pages);
    json.end_object();
  }
  json.end_object();
  return json.str();
}

/// Answers a search that has found nothing. Asks for the types, as those that are known may be old.
void answer_nothing(Client& client, const HttpRequest& asked, const std::string& text, const HttpReply& reply) {
  client.core().client().refresh_schemas(kTypesTimeout, [&client, asked, text, reply](const Status& status) {
    if (!status) return reply(error_answer(asked, status));
    for (const auto& type : client.core().types()->types()) {
      for (const Field& field : type->fields()) {
        if (field.index == IndexRole::Keyword) return reply({.status = 200, .body = text});
      }
    }
    reply(error_answer(asked, {StatusCode::NotFound,
                               "there is nothing to search: no document type has a field with `index: keyword`"}));
  });
}

void search(Client& client, const ApiCall& call, const HttpReply& reply) {
  auto request = read_search(call.request.body);
  if (!request) return reply(error_answer(call.request, request.error()));
  const bool explain = request->explain;
  client.search(std::move(*request))
      .then([&client, asked = HttpRequest{.method = call.request.method, .target = call.request.target, .body = {}},
             explain, reply](const SearchResult& result) {
        if (!result.status) return reply(error_answer(asked, result.status));
        const std::string text = text_of(result, explain);
        if (result.keywords_matched == 0) return answer_nothing(client, asked, text, reply);
        reply({.status = 200, .body = text});
      });
}

}  // namespace

void add_search_routes(RouteTable& routes, Client& client) {
  routes.add("POST", "/search/v1", {},
             [&client](const ApiCall& call, const HttpReply& reply) { search(client, call, reply); });
}

}  // namespace fjord::gateway
