#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/document/document_id.h"
#include "fjord/search/query.h"
#include "fjord/search/search_document.h"

namespace fjord::search {

/// A place that an advertiser has won or could win, with the advertiser's best keyword and ad.
struct Hit {
  std::uint64_t advertiser = 0;
  std::int64_t score = 0;        ///< bid_micros * quality_ppm: whole numbers, so that every process computes the same.
  std::int64_t quality_ppm = 0;  ///< Millionths; at least 1.
  std::int64_t bid_micros = 0;
  GlobalId keyword;
  GlobalId ad;
  std::string keyword_id;
  std::string ad_id;
  std::string title;
  std::string matched;  ///< The words of the keyword.
  /// Price of a click; set by merge_hits().
  std::int64_t price_micros = 0;

  friend bool operator==(const Hit&, const Hit&) = default;
};

/// True if `a` comes before `b`: by score, then by numbers that differ between any two hits. So the order is the same
/// wherever it is computed.
bool is_better(const Hit& a, const Hit& b);

/// A group with its ads, decoded once for all of its keywords. Lifetime: the payloads passed to it outlive it.
struct GroupMembers {
  std::optional<GroupData> group;
  struct Ad {
    GlobalId gid;
    AdData data;
    std::uint64_t sketch[4] = {};  ///< The title's groups of three characters, hashed to 256 bits.
  };
  std::vector<Ad> ads;

  void add_ad(const GlobalId& gid, const AdData& data);
};

/// The auction among the keywords that match a query, on one node. All work is done in add(): the time of an auction
/// grows with the number of keywords.
///
/// Threading: one thread. Lifetime: query and context outlive it.
class Auction {
 public:
  /// Keywords that bid less than `reserve_micros` do not take part.
  Auction(std::span<const QueryVariant> variants, const SearchContext& context, std::int64_t reserve_micros);

  /// Adds a keyword that matches the form `variant` of the query. `words` are the words of the keyword.
  void add(const GlobalId& gid, std::string_view words, MatchKind kind, std::size_t variant, const KeywordData& keyword,
           const GroupMembers& group);

  /// Returns the number of keywords added.
  std::size_t candidates() const { return candidates_; }
  /// Returns the best hit of each advertiser, at most `count`, best first. With `count` = K + 1 from each node,
  /// merge_hits() finds the first K places and their prices: a better hit on one node is better on all nodes.
  std::vector<Hit> best(std::size_t count) const;

 private:
  std::span<const QueryVariant> variants_;
  const SearchContext& context_;
  std::int64_t reserve_micros_;
  std::vector<std::array<std::uint64_t, 4>> sketches_;  // The sketch of each variant.
  std::size_t candidates_ = 0;
  std::map<std::uint64_t, Hit> best_;  // By advertiser.
};

/// Number of features from which quality_of() computes the quality.
inline constexpr std::size_t kFeatures = 20;
/// Returns the features on which the quality of a keyword depends, each from about 0 to about 1.
std::array<double, kFeatures> features_of(const QueryVariant& query, const std::array<std::uint64_t, 4>& query_sketch,
                                          std::size_t variant, const SearchContext& context, std::string_view words,
                                          MatchKind kind, const KeywordData& keyword, const GroupData& group,
                                          const GroupMembers::Ad& ad);
/// Returns how well the ad fits the person who searches, in millionths: 1 to 2,000,000, about a million for an average
/// ad.
std::int64_t quality_of(const std::array<double, kFeatures>& features);
/// Hashes the groups of three characters of a text into 256 bits.
std::array<std::uint64_t, 4> sketch_of(std::string_view text);

/// Returns the names of the features, for --explain.
std::span<const std::string_view> feature_names();

/// Returns the best hit of each advertiser, at most `count`, best first.
std::vector<Hit> best_of(std::vector<Hit> hits, std::size_t count);

/// Merges the hits of several nodes: keeps one hit an advertiser and the first `places`, and sets the prices
/// (generalised second price): the bid that gives the own quality the score of the next hit, but at least the reserve.
std::vector<Hit> merge_hits(std::vector<Hit> hits, std::size_t places, std::int64_t reserve_micros);

}  // namespace fjord::search
