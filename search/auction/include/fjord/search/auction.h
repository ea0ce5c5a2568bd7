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

/// A place that was won, or could be: the best keyword and ad of an advertiser.
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
  /// What a click costs; known after merge_hits().
  std::int64_t price_micros = 0;

  friend bool operator==(const Hit&, const Hit&) = default;
};

/// True if `a` comes before `b`: by score, then by numbers that no two hits share. So the order is the same wherever it
/// is computed.
bool is_better(const Hit& a, const Hit& b);

/// A group with its ads, decoded once for all of its keywords. Lifetime: of the payloads passed to it.
struct GroupMembers {
  std::optional<GroupData> group;
  struct Ad {
    GlobalId gid;
    AdData data;
    std::uint64_t sketch[4] = {};  ///< The title's groups of three characters, hashed.
  };
  std::vector<Ad> ads;

  void add_ad(const GlobalId& gid, const AdData& data);
};

/// The auction among the keywords that match a query, on one node. All work is done in add(): the time of an auction
/// grows with its candidates.
///
/// Threading: one thread. Lifetime: query and context outlive it.
class Auction {
 public:
  /// Keywords that bid less than `reserve_micros` do not take part.
  Auction(std::span<const QueryVariant> variants, const SearchContext& context, std::int64_t reserve_micros);

  /// Adds a keyword that matches the query in its form `variant`. `words` are the keyword's.
  void add(const GlobalId& gid, std::string_view words, MatchKind kind, std::size_t variant, const KeywordData& keyword,
           const GroupMembers& group);

  /// Number of keywords added.
  std::size_t candidates() const { return candidates_; }
  /// The best of each advertiser, at most `count`, best first. With `count` = K + 1 from each node, merge_hits() finds
  /// the first K places and their prices: who beats an advertiser on the node of its best keyword beats it everywhere.
  std::vector<Hit> best(std::size_t count) const;

 private:
  std::span<const QueryVariant> variants_;
  const SearchContext& context_;
  std::int64_t reserve_micros_;
  std::vector<std::array<std::uint64_t, 4>> sketches_;  // One for each variant.
  std::size_t candidates_ = 0;
  std::map<std::uint64_t, Hit> best_;  // By advertiser.
};

/// Number of features of which quality() is made.
inline constexpr std::size_t kFeatures = 20;
/// Everything that the quality of a keyword depends on, each about 0 to 1.
std::array<double, kFeatures> features_of(const QueryVariant& query, const std::array<std::uint64_t, 4>& query_sketch,
                                          std::size_t variant, const SearchContext& context, std::string_view words,
                                          MatchKind kind, const KeywordData& keyword, const GroupData& group,
                                          const GroupMembers::Ad& ad);
/// How well the ad fits who searches, in millionths: 1 to 2,000,000, about a million for an ordinary one.
std::int64_t quality_of(const std::array<double, kFeatures>& features);
/// Hashes the groups of three characters of a text into 256 bits.
std::array<std::uint64_t, 4> sketch_of(std::string_view text);

/// The names of the features, for --explain.
std::span<const std::string_view> feature_names();

/// The best hit of each advertiser, at most `count`, best first.
std::vector<Hit> best_of(std::vector<Hit> hits, std::size_t count);

/// Merges the hits of several nodes: one place an advertiser, the first `places` of all, and their prices (generalised
/// second price): what the next one's score costs at the own quality, at least the reserve.
std::vector<Hit> merge_hits(std::vector<Hit> hits, std::size_t places, std::int64_t reserve_micros);

}  // namespace fjord::search
