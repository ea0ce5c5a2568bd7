#include "fjord/search/auction.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "fjord/common/random.h"
#include "fjord/search/reference_search.h"

namespace fjord::search {
namespace {

constexpr std::int64_t kReserve = 10'000;

GlobalId gid_of(const std::string& id) { return DocumentId::parse(id)->gid(); }

SearchDocument keyword(std::uint64_t group, const std::string& id, const std::string& words, std::int64_t bid,
                       MatchKind kind = MatchKind::Broad) {
  return {.role = IndexRole::Keyword,
          .group = group,
          .kind = kind,
          .words = words,
          .payload = KeywordData{.id = id, .bid_micros = bid}.encode()};
}

/// Returns documents of `groups` groups with few words and few advertisers, so that many compete.
std::vector<std::pair<GlobalId, SearchDocument>> random_documents(Random& random, std::uint64_t groups) {
  constexpr const char* kWords[] = {"red", "car", "new", "mask", "made", "home", "boots"};
  std::vector<std::pair<GlobalId, SearchDocument>> out;
  const auto add = [&](const std::string& id, SearchDocument document) {
    out.emplace_back(gid_of(id), std::move(document));
  };
  for (std::uint64_t group = 0; group < groups; ++group) {
    const std::string group_id = fmt::format("id:ads:ad_group:n={}:0", group);
    const GroupData data{
        .id = group_id, .advertiser = random.below(6), .trust = 0.25 * static_cast<double>(random.below(2))};
    if (random.below(10) != 0) add(group_id, {.role = IndexRole::Group, .group = group, .payload = data.encode()});
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      const std::string id = fmt::format("id:ads:ad:n={}:{}", group, i);
      const AdData ad{.id = id, .title = kWords[random.below(2)]};
      add(id, {.role = IndexRole::Ad, .group = group, .payload = ad.encode()});
    }
    for (std::uint64_t i = random.below(5); i > 0; --i) {
      const std::string id = fmt::format("id:ads:keyword:n={}:{}", group, i);
      std::string words = kWords[random.below(7)];
      if (random.below(2) == 0) words += std::string(" ") + kWords[random.below(7)];
      // There are few different bids, so that scores are often equal.
      add(id, keyword(group, id, words, static_cast<std::int64_t>(random.below(5)) * 20'000,
                      static_cast<MatchKind>(random.below(3))));
    }
  }
  return out;
}

TEST_CASE("an auction over any split of the groups, merged, equals the whole one, prices too") {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    const auto documents = random_documents(random, 1 + random.below(30));
    const auto variants = *parse_query(round % 2 == 0 ? "new red car" : "home made mask boots");
    const SearchContext context = *SearchContext::parse({{"device", "phone"}});
    const std::size_t places = 1 + random.below(5);
    ReferenceSearch whole;
    std::vector<ReferenceSearch> parts(1 + random.below(5));
    for (const auto& [gid, document] : documents) {
      whole.put(gid, document);
      parts[mix64(document.group, static_cast<std::uint64_t>(round)) % parts.size()].put(gid, document);
    }
    std::vector<Hit> hits;
    for (const ReferenceSearch& part : parts) {
      for (Hit& hit : part.search(variants, context, places + 1, kReserve)) hits.push_back(std::move(hit));
    }
    CHECK(merge_hits(std::move(hits), places, kReserve) == whole.search(variants, context, places, kReserve));
  }
}

TEST_CASE("an advertiser gets one place, with its best keyword, and pays what the next one's score costs") {
  ReferenceSearch search;
  for (std::uint64_t group = 1; group <= 3; ++group) {
    const std::string group_id = fmt::format("id:ads:ad_group:n={}:0", group);
    const std::string ad_id = fmt::format("id:ads:ad:n={}:1", group);
    search.put(gid_of(group_id), {.role = IndexRole::Group,
                                  .group = group,
                                  .payload = GroupData{.id = group_id, .advertiser = group == 3 ? 1 : group}.encode()});
    search.put(gid_of(ad_id),
               {.role = IndexRole::Ad, .group = group, .payload = AdData{.id = ad_id, .title = "Mask"}.encode()});
    const std::string id = fmt::format("id:ads:keyword:n={}:1", group);
    search.put(gid_of(id), keyword(group, id, "mask", static_cast<std::int64_t>(group) * 100'000));
  }
  const auto hits = search.search(*parse_query("mask"), {}, 5, kReserve);
  REQUIRE(hits.size() == 2);
  CHECK(hits[0].advertiser == 1);
  CHECK(hits[0].keyword_id == "id:ads:keyword:n=3:1");
  CHECK(hits[1].advertiser == 2);
  // All ads have equal quality, so a place costs the bid of the next ad. The last ad pays the reserve price.
  CHECK(hits[0].price_micros == 200'000);
  CHECK(hits[1].price_micros == kReserve);
  // Even if only one place is sold, the second advertiser sets its price.
  const auto first = search.search(*parse_query("mask"), {}, 1, kReserve);
  REQUIRE(first.size() == 1);
  CHECK(first[0].price_micros == 200'000);
}

TEST_CASE("no price is above the bid or below the reserve, and a higher place never scores less") {
  Random random(11);
  std::size_t sold = 0;
  for (int round = 0; round < 200; ++round) {
    ReferenceSearch search;
    for (const auto& [gid, document] : random_documents(random, 20)) search.put(gid, document);
    const auto hits = search.search(*parse_query("new red car mask"), {}, 4, kReserve);
    for (std::size_t i = 0; i < hits.size(); ++i) {
      ++sold;
      CHECK(hits[i].price_micros <= hits[i].bid_micros);
      CHECK(hits[i].price_micros >= kReserve);
      // With a bid that is lower by a millionth, the ad loses its place.
      if (i + 1 < hits.size()) {
        CHECK(hits[i].score >= hits[i + 1].score);
        CHECK(hits[i].price_micros * hits[i].quality_ppm >= hits[i + 1].score);
      }
    }
  }
  CHECK(sold > 300);
}

TEST_CASE("each feature can decide between two ads") {
  const QueryVariant query("new red car today");
  const auto sketch = sketch_of(query.text());
  SearchContext context = *SearchContext::parse({{"device", "phone"},
                                                 {"language", "cs"},
                                                 {"region", "praha"},
                                                 {"hour", "9"},
                                                 {"age", "30"},
                                                 {"interests", "ski tea"}});
  const auto features = [&](std::string_view words, MatchKind kind, std::size_t variant, const KeywordData& k,
                            const GroupData& g, const AdData& a) {
    GroupMembers members;
    members.group = g;
    members.add_ad({}, a);
    return features_of(query, sketch, variant, context, words, kind, k, g, members.ads.front());
  };
  const auto low = features("today new", MatchKind::Broad, 1, {.ctr = 0.001, .relevance = 0.1},
                            {.trust = 0.1,
                             .landing = 0.1,
                             .budget_left = 0.1,
                             .hours = 1U << 21,
                             .age_min = 60,
                             .language = "en",
                             .region = "brno",
                             .topics = "golf"},
                            {.title = "Xyz", .ctr = 0.001, .phone = 0.5});
  const auto high =
      features("new red car today", MatchKind::Exact, 0, {.ctr = 0.2, .relevance = 0.9, .conversion = 0.3},
               {.trust = 0.9,
                .landing = 0.9,
                .budget_left = 0.9,
                .hours = 1U << 9,
                .age_min = 20,
                .age_max = 40,
                .language = "cs",
                .region = "praha",
                .topics = "tea ski"},
               {.title = "New red car", .ctr = 0.1, .phone = 2.0});
  const auto phrase = features("new red", MatchKind::Phrase, 0, {}, {}, {});
  for (std::size_t i = 0; i < kFeatures; ++i) {
    INFO(feature_names()[i]);
    if (feature_names()[i] == "phrase") {
      CHECK(phrase[i] != low[i]);
    } else if (feature_names()[i] == "early" || feature_names()[i] == "long_query") {
      CHECK(high[i] == low[i]);  // Both keywords begin with the query's first word; both have the same query.
    } else if (feature_names()[i] == "variant") {
      CHECK(high[i] < low[i]);
    } else {
      CHECK(high[i] > low[i]);
    }
  }
  CHECK(features("today", MatchKind::Broad, 0, {}, {}, {})[3] < high[3]);
  CHECK(quality_of(high) > quality_of(low));
  std::array<double, kFeatures> none{};
  CHECK(quality_of(none) >= 1);
}

TEST_CASE("keywords below the reserve, without a group or without an ad take no part") {
  ReferenceSearch search;
  const auto put = [&](const std::string& id, SearchDocument document) { search.put(gid_of(id), std::move(document)); };
  put("id:ads:keyword:n=1:1", keyword(1, "k1", "mask", 50'000));
  CHECK(search.search(*parse_query("mask"), {}, 5, kReserve).empty());
  put("id:ads:ad:n=1:1", {.role = IndexRole::Ad, .group = 1, .payload = AdData{.id = "a1", .title = "t"}.encode()});
  CHECK(search.search(*parse_query("mask"), {}, 5, kReserve).empty());
  put("id:ads:ad_group:n=1:1",
      {.role = IndexRole::Group, .group = 1, .payload = GroupData{.id = "g1", .advertiser = 4}.encode()});
  CHECK(search.search(*parse_query("mask"), {}, 5, kReserve).size() == 1);
  CHECK(search.search(*parse_query("mask"), {}, 5, 50'001).empty());
  search.remove(gid_of("id:ads:keyword:n=1:1"));
  CHECK(search.search(*parse_query("mask"), {}, 5, kReserve).empty());
}

}  // namespace
}  // namespace fjord::search
