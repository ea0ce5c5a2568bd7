#include "fjord/search/auction.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "fjord/common/hash.h"

namespace fjord::search {
namespace {

using Sketch = std::array<std::uint64_t, 4>;

/// Weights of the features, in their order; the bias makes the quality of an ordinary ad about 1.
constexpr std::array<double, kFeatures> kWeights = {
    0.9,   // coverage
    0.5,   // exact
    0.25,  // phrase
    0.2,   // early
    0.3,   // together
    -0.2,  // long_query
    -0.4,  // variant
    0.8,   // keyword_ctr
    0.6,   // relevance
    0.3,   // conversion
    0.5,   // trust
    0.5,   // landing
    0.4,   // budget
    0.35,  // hour
    0.3,   // age
    0.4,   // language
    0.4,   // region
    0.5,   // interests
    0.9,   // ad_ctr_on_device
    0.7,   // title_similarity
};
constexpr double kBias = -3.4;
constexpr double kQualityMax = 2'000'000.0;

constexpr std::string_view kNames[kFeatures] = {
    "coverage",    "exact",     "phrase",     "early",     "together",         "long_query",      "variant",
    "keyword_ctr", "relevance", "conversion", "trust",     "landing",          "budget",          "hour",
    "age",         "language",  "region",     "interests", "ad_ctr_on_device", "title_similarity"};

/// Maps a rate of clicks to about 0 to 1: such rates span several powers of ten.
double on_log_scale(double rate) { return std::clamp(std::log1p(rate * 1000.0) / 7.0, 0.0, 1.0); }

/// Returns 1 if both are known and agree, 0 if they differ, 0.5 if one is not known.
double agreement(std::string_view wanted, std::string_view given) {
  if (wanted.empty() || given.empty()) return 0.5;
  return wanted == given ? 1.0 : 0.0;
}

struct Placement {
  std::size_t words = 0;  ///< Number of words of the keyword.
  std::size_t first = 0;  ///< Places of the keyword's first and last word in the query.
  std::size_t last = 0;
};

Placement placement_of(std::string_view words, const QueryVariant& query) {
  Placement placed{.words = 0, .first = query.words().size(), .last = 0};
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::size_t at = query.find(words.substr(0, end));
    ++placed.words;
    if (at != QueryVariant::npos) {
      placed.first = std::min(placed.first, at);
      placed.last = std::max(placed.last, at);
    }
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return placed;
}

double hour_fit(std::uint32_t hours, int hour) {
  if (hours == 0 || hour < 0) return 0.5;
  // Finds the nearest hour that the group wants, around the clock.
  for (int distance = 0; distance <= 12; ++distance) {
    const std::uint32_t before = std::uint32_t{1} << ((hour + 24 - distance) % 24);
    const std::uint32_t after = std::uint32_t{1} << ((hour + distance) % 24);
    if ((hours & (before | after)) != 0) return 1.0 - distance / 12.0;
  }
  return 0.0;
}

double age_fit(const GroupData& group, int age) {
  if (age < 0 || (group.age_min == 0 && group.age_max == 0)) return 0.5;
  const int max = group.age_max == 0 ? 150 : static_cast<int>(group.age_max);
  const int outside = std::max({static_cast<int>(group.age_min) - age, age - max, 0});
  return std::exp(-outside / 10.0);
}

double interest_fit(const std::vector<std::string>& interests, std::string_view topics) {
  if (interests.empty() || topics.empty()) return 0.5;
  std::size_t shared = 0;
  for (const std::string& interest : interests) {
    for (std::size_t at = topics.find(interest); at != std::string_view::npos; at = topics.find(interest, at + 1)) {
      const std::size_t end = at + interest.size();
      if ((at == 0 || topics[at - 1] == ' ') && (end == topics.size() || topics[end] == ' ')) {
        ++shared;
        break;
      }
    }
  }
  return static_cast<double>(shared) / static_cast<double>(interests.size());
}

double on_device(const AdData& ad, Device device) {
  switch (device) {
    case Device::Phone:
      return ad.phone;
    case Device::Desktop:
      return ad.desktop;
    case Device::Tablet:
      return ad.tablet;
    case Device::Unknown:
      break;
  }
  return 1.0;
}

double similarity(const Sketch& a, const std::uint64_t (&b)[4]) {
  int both = 0;
  int either = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    both += std::popcount(a[i] & b[i]);
    either += std::popcount(a[i] | b[i]);
  }
  return either == 0 ? 0.0 : static_cast<double>(both) / either;
}

}  // namespace

bool is_better(const Hit& a, const Hit& b) {
  if (a.score != b.score) return a.score > b.score;
  return std::tie(a.advertiser, a.keyword, a.ad) < std::tie(b.advertiser, b.keyword, b.ad);
}

std::span<const std::string_view> feature_names() { return kNames; }

Sketch sketch_of(std::string_view text) {
  Sketch sketch{};
  for (std::size_t at = 0; at + 3 <= text.size(); ++at) {
    const std::uint64_t bits = mix64(static_cast<std::uint8_t>(text[at]) |
                                         static_cast<std::uint64_t>(static_cast<std::uint8_t>(text[at + 1])) << 8 |
                                         static_cast<std::uint64_t>(static_cast<std::uint8_t>(text[at + 2])) << 16,
                                     3);
    sketch[bits % 4] |= std::uint64_t{1} << (bits / 4 % 64);
  }
  return sketch;
}

void GroupMembers::add_ad(const GlobalId& gid, const AdData& data) {
  Ad ad{.gid = gid, .data = data};
  std::string lower(data.title);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  const Sketch sketch = sketch_of(lower);
  std::copy(sketch.begin(), sketch.end(), ad.sketch);
  ads.push_back(ad);
}

std::array<double, kFeatures> features_of(const QueryVariant& query, const Sketch& query_sketch, std::size_t variant,
                                          const SearchContext& context, std::string_view words, MatchKind kind,
                                          const KeywordData& keyword, const GroupData& group,
                                          const GroupMembers::Ad& ad) {
  const Placement placed = placement_of(words, query);
  const auto query_words = static_cast<double>(query.words().size());
  const double spread = placed.last >= placed.first ? static_cast<double>(placed.last - placed.first + 1) : 1.0;
  return {
      std::min(1.0, static_cast<double>(placed.words) / query_words),
      kind == MatchKind::Exact ? 1.0 : 0.0,
      kind == MatchKind::Phrase ? 1.0 : 0.0,
      1.0 - static_cast<double>(placed.first) / query_words,
      std::min(1.0, static_cast<double>(placed.words) / spread),
      query_words / static_cast<double>(kQueryWordsMax),
      variant == 0 ? 0.0 : 1.0,
      on_log_scale(keyword.ctr),
      keyword.relevance,
      on_log_scale(keyword.conversion),
      group.trust,
      group.landing,
      std::sqrt(std::max(group.budget_left, 0.0)),
      hour_fit(group.hours, context.hour),
      age_fit(group, context.age),
      agreement(group.language, context.language),
      agreement(group.region, context.region),
      interest_fit(context.interests, group.topics),
      on_log_scale(std::min(1.0, ad.data.ctr * on_device(ad.data, context.device))),
      similarity(query_sketch, ad.sketch),
  };
}

std::int64_t quality_of(const std::array<double, kFeatures>& features) {
  double sum = kBias;
  for (std::size_t i = 0; i < kFeatures; ++i) sum += kWeights[i] * features[i];
  return std::max<std::int64_t>(1, std::llround(kQualityMax / (1.0 + std::exp(-sum))));
}

Auction::Auction(std::span<const QueryVariant> variants, const SearchContext& context, std::int64_t reserve_micros)
    : variants_(variants), context_(context), reserve_micros_(reserve_micros) {
  for (const QueryVariant& variant : variants) sketches_.push_back(sketch_of(variant.text()));
}

void Auction::add(const GlobalId& gid, std::string_view words, MatchKind kind, std::size_t variant,
                  const KeywordData& keyword, const GroupMembers& group) {
  ++candidates_;
  if (!group.group || keyword.bid_micros < reserve_micros_ || keyword.bid_micros <= 0) return;
  const GroupMembers::Ad* best_ad = nullptr;
  std::int64_t best_quality = 0;
  for (const GroupMembers::Ad& ad : group.ads) {
    const std::int64_t quality = quality_of(
        features_of(variants_[variant], sketches_[variant], variant, context_, words, kind, keyword, *group.group, ad));
    if (best_ad == nullptr || quality > best_quality || (quality == best_quality && ad.gid < best_ad->gid)) {
      best_ad = &ad;
      best_quality = quality;
    }
  }
  if (best_ad == nullptr) return;
  Hit hit;
  hit.advertiser = group.group->advertiser;
  hit.score = keyword.bid_micros * best_quality;
  hit.keyword = gid;
  hit.ad = best_ad->gid;
  const auto [at, is_first] = best_.try_emplace(hit.advertiser);
  if (!is_first && !is_better(hit, at->second)) return;
  hit.quality_ppm = best_quality;
  hit.bid_micros = keyword.bid_micros;
  hit.keyword_id = keyword.id;
  hit.ad_id = best_ad->data.id;
  hit.title = best_ad->data.title;
  hit.matched = words;
  at->second = std::move(hit);
}

std::vector<Hit> Auction::best(std::size_t count) const {
  std::vector<const Hit*> order;
  order.reserve(best_.size());
  for (const auto& [advertiser, hit] : best_) order.push_back(&hit);
  const std::size_t kept = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [](const Hit* a, const Hit* b) { return is_better(*a, *b); });
  std::vector<Hit> hits;
  hits.reserve(kept);
  for (std::size_t i = 0; i < kept; ++i) hits.push_back(*order[i]);
  return hits;
}

std::vector<Hit> best_of(std::vector<Hit> hits, std::size_t count) {
  std::sort(hits.begin(), hits.end(), is_better);
  std::set<std::uint64_t> advertisers;
  std::erase_if(hits, [&](const Hit& hit) { return !advertisers.insert(hit.advertiser).second; });
  if (hits.size() > count) hits.resize(count);
  return hits;
}

std::vector<Hit> merge_hits(std::vector<Hit> hits, std::size_t places, std::int64_t reserve_micros) {
  hits = best_of(std::move(hits), places + 1);
  const std::size_t taken = std::min(places, hits.size());
  for (std::size_t i = 0; i < taken; ++i) {
    const std::int64_t next = i + 1 < hits.size() ? hits[i + 1].score : 0;
    // The price is rounded up, so that it keeps the place. It never exceeds the bid, as the next score is not higher.
    const std::int64_t price = (next + hits[i].quality_ppm - 1) / hits[i].quality_ppm;
    hits[i].price_micros = std::max(reserve_micros, price);
  }
  hits.resize(taken);
  return hits;
}

}  // namespace fjord::search
