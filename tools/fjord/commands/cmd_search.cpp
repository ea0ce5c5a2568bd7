#include <fmt/format.h>

#include "commands/commands.h"
#include "fjord/library/search.h"
#include "output/json_text.h"

namespace fjord::cli {
namespace {

std::string money(std::int64_t micros) { return fmt::format("{}.{:06}", micros / 1'000'000, micros % 1'000'000); }

std::string as_text(const SearchResult& result) {
  std::string text = fmt::format("{:<5} {:<12} {:>12} {:>12} {:>8}  {:<28} {}\n", "PLACE", "ADVERTISER", "PRICE", "BID",
                                 "QUALITY", "AD", "TITLE");
  std::size_t place = 0;
  for (const SearchPlace& one : result.places) {
    text += fmt::format("{:<5} {:<12} {:>12} {:>12} {:>8.3f}  {:<28} {}\n", ++place, one.advertiser,
                        money(one.price_micros), money(one.bid_micros), static_cast<double>(one.quality_ppm) / 1e6,
                        one.ad, one.title);
  }
  return text;
}

std::string explanation(const SearchResult& result) {
  std::string text = fmt::format("\n{} of {} slices searched under state {} in {:.3f} ms, {} keywords matched\n",
                                 result.slices_searched, result.slices, result.state_version,
                                 static_cast<double>(result.took.count()) / 1000.0, result.keywords_matched);
  for (const std::string& variant : result.variants) text += fmt::format("searched for: {}\n", variant);
  text += fmt::format("replicas chosen: {}\n", result.choice);
  for (const auto& [word, pages] : result.word_pages) text += fmt::format("{}: {} pages\n", word, pages);
  for (const SearchPlace& one : result.places) text += fmt::format("{}: {} ({})\n", one.ad, one.keyword, one.matched);
  text += fmt::format("{:<12} {:>7} {:>9} {:>9} {:>8} {:>10} {:>10} {:>6} {:>7} {:>6} {:>6} {:>12} {:>6}  {}\n", "NODE",
                      "SLICES", "SEARCHED", "COMPARED", "MATCHED", "MS", "MS ON NODE", "CLASS", "VOTES", "SHARE",
                      "LOAD", "LISTS READ", "PAGES", "WHY NOT ALL");
  for (const SearchedNode& node : result.nodes) {
    text += fmt::format(
        "{:<12} {:>7} {:>9} {:>9} {:>8} {:>10.3f} {:>10.3f} {:>6} {:>7.1f} {:>6.3f} {:>6.2f} {:>12} {:>6}  {}\n",
        node.node, node.slices_asked, node.slices_searched, node.keywords_compared, node.keywords_matched,
        static_cast<double>(node.took.count()) / 1000.0, static_cast<double>(node.search_took.count()) / 1000.0,
        node.replica_class, node.votes, node.share, node.utilisation,
        fmt::format("{} of {}", node.lists_read, node.lists_found + node.lists_read), node.pages_read,
        node.status.is_ok() ? "" : node.status.message());
  }
  return text;
}

void add_places(JsonText& json, const SearchResult& result) {
  json.key("places").begin_array();
  for (const SearchPlace& one : result.places) {
    json.begin_object().key("advertiser").number(one.advertiser).key("ad").text(one.ad);
    json.key("keyword").text(one.keyword).key("title").text(one.title).key("matched").text(one.matched);
    json.key("bid_micros").integer(one.bid_micros).key("price_micros").integer(one.price_micros);
    json.key("quality_ppm").integer(one.quality_ppm).end_object();
  }
  json.end_array();
}

std::string as_json(const SearchResult& result, bool explain) {
  JsonText json;
  json.begin_object();
  add_places(json, result);
  json.key("slices").number(result.slices).key("slices_searched").number(result.slices_searched);
  json.key("complete").boolean(result.is_complete());
  if (!result.missing.is_ok()) json.key("missing").text(result.missing.message());
  json.key("state_version").number(result.state_version).key("keywords_matched").number(result.keywords_matched);
  json.key("took_us").integer(result.took.count());
  if (explain) {
    json.key("variants").begin_array();
    for (const std::string& variant : result.variants) json.text(variant);
    json.end_array().key("choice").text(result.choice).key("word_pages").begin_object();
    for (const auto& [word, pages] : result.word_pages) json.key(word).number(pages);
    json.end_object().key("nodes").begin_array();
    for (const SearchedNode& node : result.nodes) {
      json.begin_object().key("node").text(node.node).key("slices_asked").number(node.slices_asked);
      json.key("slices_searched").number(node.slices_searched).key("keywords_compared").number(node.keywords_compared);
      json.key("keywords_matched").number(node.keywords_matched).key("took_us").integer(node.took.count());
      json.key("search_us").integer(node.search_took.count());
      json.key("lists_found").number(node.lists_found).key("lists_read").number(node.lists_read);
      json.key("pages").number(node.pages).key("pages_read").number(node.pages_read);
      json.key("utilisation").real(node.utilisation, 3).key("class").number(node.replica_class);
      json.key("share").real(node.share, 3).key("votes").real(node.votes, 3);
      if (!node.status.is_ok()) json.key("why_not_all").text(node.status.message());
      json.end_object();
    }
    json.end_array();
  }
  return json.end_object().str();
}

}  // namespace

int run_search(const SearchArgs& args) {
  const auto context = parse_assignments("--context", args.context);
  if (!context) return report(context.error());
  Client client = client_of(args.common);
  if (const Status status = ready(client, args.common); !status) return report(status);
  SearchRequest request;
  request.query = args.query;
  request.context = *context;
  request.limit = args.limit;
  request.timeout = milliseconds(args.within_ms);
  request.session = args.session;
  request.explain = args.explain;
  const SearchResult result = client.search(std::move(request));
  if (!result.status) return report(result.status);
  if (args.common.json()) {
    print_line(as_json(result, args.explain));
  } else {
    print(as_text(result));
    if (args.explain) print(explanation(result));
  }
  if (result.is_complete()) return kOk;
  complain(result.missing.message());
  return kPartial;
}

}  // namespace fjord::cli
