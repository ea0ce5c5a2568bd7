#include "fjord/search/query.h"

#include <catch2/catch.hpp>

namespace fjord::search {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("a text is split into folded words, whatever is between them") {
  CHECK(fold_words("  New CARS, made by\tCarmobile! ") == Words{"new", "cars", "made", "by", "carmobile"});
  CHECK(fold_words("Équo STRASSE Straße") == Words{"équo", "strasse", "strasse"});
  CHECK(fold_words("E\u0301quo") == Words{"équo"});  // A letter and a mark are one letter.
  CHECK(fold_words("4x4 ŽLUŤOUČKÝ-kůň") == Words{"4x4", "žluťoučký", "kůň"});
  CHECK(fold_words("...").empty());
  CHECK(fold_words("a\xff"
                   "b") == Words{"a", "b"});
}

TEST_CASE("a query is searched as it is, and without diacritics if that differs") {
  const auto plain = parse_query("Cheap masks");
  REQUIRE(plain);
  REQUIRE(plain->size() == 1);
  CHECK(plain->front().text() == "cheap masks");
  const auto marked = parse_query("Žluťoučký kůň");
  REQUIRE(marked);
  REQUIRE(marked->size() == 2);
  CHECK((*marked)[0].text() == "žluťoučký kůň");
  CHECK((*marked)[1].text() == "zlutoucky kun");
}

TEST_CASE("a query without a word, too long or not UTF-8 is refused") {
  CHECK(parse_query(" -- ").error().code() == StatusCode::InvalidArgument);
  CHECK(parse_query("a\xc3").error().code() == StatusCode::InvalidArgument);
  CHECK(parse_query(std::string(kQueryBytesMax + 1, 'a')).error().code() == StatusCode::InvalidArgument);
  std::string many;
  for (std::size_t i = 0; i <= kQueryWordsMax; ++i) many += "w ";
  CHECK(parse_query(many).error().code() == StatusCode::InvalidArgument);
}

TEST_CASE("broad keywords need all words, phrases their order, exact ones the whole query") {
  const QueryVariant query("where to buy a home made mask");
  CHECK(matches(MatchKind::Broad, "mask buy", query));
  CHECK_FALSE(matches(MatchKind::Broad, "mask sale", query));
  CHECK(matches(MatchKind::Phrase, "home made mask", query));
  CHECK(matches(MatchKind::Phrase, "mask", query));
  CHECK_FALSE(matches(MatchKind::Phrase, "home mask", query));
  CHECK_FALSE(matches(MatchKind::Phrase, "made mask today", query));
  CHECK_FALSE(matches(MatchKind::Exact, "where to buy", query));
  CHECK(matches(MatchKind::Exact, "where to buy a home made mask", query));
  CHECK_FALSE(matches(MatchKind::Exact, "where to buy a home made mask today", query));
  CHECK_FALSE(matches(MatchKind::Broad, "", query));
  CHECK_FALSE(matches(MatchKind::Phrase, "", query));
  // The phrase begins a second time within a false start.
  CHECK(matches(MatchKind::Phrase, "red red car", QueryVariant("red red red car")));
}

TEST_CASE("the context is checked, and an error names the key and what it may be") {
  const auto context = SearchContext::parse({{"device", "phone"},
                                             {"language", "CS"},
                                             {"region", "Praha"},
                                             {"hour", "23"},
                                             {"age", "40"},
                                             {"interests", "Ski, tea"}});
  REQUIRE(context);
  CHECK(context->device == Device::Phone);
  CHECK(context->language == "cs");
  CHECK(context->region == "praha");
  CHECK(context->hour == 23);
  CHECK(context->age == 40);
  CHECK(context->interests == Words{"ski", "tea"});
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"device", "watch"}, {"hour", "24"}, {"hour ", "1"}, {"age", "-1"}, {"age", "x"}, {"colour", "red"}}) {
    const auto broken = SearchContext::parse({{key, value}});
    INFO(key << "=" << value);
    REQUIRE_FALSE(broken);
    CHECK(broken.error().code() == StatusCode::InvalidArgument);
    CHECK(broken.error().message().find(key) != std::string::npos);
  }
}

}  // namespace
}  // namespace fjord::search
