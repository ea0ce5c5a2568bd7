#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fjord/document/document.h"
#include "fjord/search/query.h"

namespace fjord::search {

/// The data that a search needs of a document whose type takes part in searches (`index:` in its schema). The documents
/// of one group, its keywords and its ads, have ids with the same number (n=<group>).
struct SearchDocument {
  IndexRole role = IndexRole::None;
  std::uint64_t group = 0;            ///< The number n in the document's id.
  MatchKind kind = MatchKind::Broad;  ///< For keywords only.
  std::string words = {};             ///< For keywords only: the folded words, a space between two.
  std::string payload = {};           ///< KeywordData, GroupData or AdData as bytes.

  friend bool operator==(const SearchDocument&, const SearchDocument&) = default;
};

/// Returns what a search needs of the document; empty if its type takes no part in searches, if its id has no number,
/// or if a keyword has no words. Fields are found by name; docs/operating/search.md lists them. A missing number has
/// its default.
std::optional<SearchDocument> search_document_of(const DocumentView& document);

/// Higher bids count as if they were this one, so that scores stay below 2^63.
inline constexpr std::int64_t kBidMicrosMax = 1'000'000'000'000;

/// The data of a keyword, as stored with it. Lifetime: views of the bytes that were decoded.
struct KeywordData {
  std::string_view id = {};
  std::int64_t bid_micros = 0;
  double ctr = 0.02;        ///< Share of the keyword's impressions that were clicked.
  double relevance = 0.5;   ///< 0 to 1
  double conversion = 0.0;  ///< Share of the keyword's clicks that led to a sale.

  std::string encode() const;
  static std::optional<KeywordData> decode(std::string_view bytes);
};

/// The data of a group, with those of its campaign and advertiser.
struct GroupData {
  std::string_view id = {};
  std::uint64_t advertiser = 0;
  double trust = 0.5;        ///< 0 to 1: how reliable the group's advertiser is.
  double landing = 0.5;      ///< 0 to 1: quality of the page behind the group's ads.
  double budget_left = 1.0;  ///< 0 to 1: share of today's budget that is left.
  std::uint32_t hours = 0;   ///< Bit h: shown preferably in hour h; 0: at any time.
  std::uint32_t age_min = 0;
  std::uint32_t age_max = 0;       ///< 0: no limit.
  std::string_view language = {};  ///< Folded; empty: any.
  std::string_view region = {};
  std::string_view topics = {};  ///< Folded words that describe the interests of the group's customers.

  std::string encode() const;
  static std::optional<GroupData> decode(std::string_view bytes);
};

struct AdData {
  std::string_view id = {};
  std::string_view title = {};
  double ctr = 0.02;
  double phone = 1.0;  ///< How much better the group does on a phone than on average.
  double desktop = 1.0;
  double tablet = 1.0;

  std::string encode() const;
  static std::optional<AdData> decode(std::string_view bytes);
};

}  // namespace fjord::search
