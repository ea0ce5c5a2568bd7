#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fjord/common/clock.h"
#include "fjord/common/status.h"

namespace fjord {

/// A search for ads by keywords; docs/operating/search.md tells what documents it needs.
struct SearchRequest {
  std::string query = {};
  /// Describes who searches. The names are device (phone, desktop, tablet), language, region, hour, age and interests;
  /// other names are refused.
  std::map<std::string, std::string> context = {};
  std::uint32_t limit = 4;  ///< Number of places, 1 to 100.
  /// The answer lacks slices that are not searched by then. 0: the live setting search.timeout.
  Duration timeout{0};
  /// True: the answer shows every write that was acknowledged before. False: those acknowledged 50 ms before.
  bool session = false;
  bool explain = false;  ///< The answer names the storage nodes and what each did.
};

/// A place that an ad has won.
struct SearchPlace {
  std::uint64_t advertiser = 0;
  std::string ad;       ///< Id of the ad's document.
  std::string keyword;  ///< Id of the keyword's document.
  std::string title;
  std::string matched;            ///< The words of the keyword.
  std::int64_t bid_micros = 0;    ///< Millionths of a unit of money.
  std::int64_t price_micros = 0;  ///< What a click costs.
  std::int64_t quality_ppm = 0;   ///< The ad's quality in millionths; an ordinary ad has about a million.
};

/// What a storage node did for a search.
struct SearchedNode {
  std::string node;  ///< "storage.2"
  std::uint32_t slices_asked = 0;
  std::uint32_t slices_searched = 0;
  std::uint64_t keywords_compared = 0;
  std::uint64_t keywords_matched = 0;
  Duration took{0};         ///< Time from sending the question to the answer.
  Duration search_took{0};  ///< Time of the search on the node alone.
  Status status;            ///< Why the node searched fewer slices than asked; else OK.

  std::uint32_t lists_found = 0;  ///< Lists of keywords that were in the node's cache.
  std::uint32_t lists_read = 0;   ///< Lists that were not in the cache and were read.
  std::uint64_t pages = 0;        ///< Size of all these lists in pages of 4 KiB.
  std::uint64_t pages_read = 0;
  double utilisation = 0.0;         ///< Load of the node, 0 to 1.
  std::uint32_t replica_class = 0;  ///< The class of replicas to which the broker counts the node here.
  double share = 0.0;               ///< The node's share of searches, by load; all shares add up to 1.
  double votes = 0.0;               ///< Pages that the node was expected to read, by the voting table.
};

struct SearchResult {
  /// Errors: InvalidArgument (a broken query or context), Busy, NotReady, Timeout. OK also if slices are missing.
  Status status;
  std::vector<SearchPlace> places = {};  ///< Best first.
  std::uint64_t state_version = 0;       ///< Cluster state under which the slices were searched.
  std::uint32_t slices = 0;              ///< Number of slices that all documents form.
  std::uint32_t slices_searched = 0;
  Status missing;  ///< Why slices are missing; OK if none is.
  std::uint64_t keywords_matched = 0;
  Duration took{0};
  std::vector<std::string> variants = {};  ///< The forms of the query that were searched.
  // What each node did; set with SearchRequest::explain, as the next two.
  std::vector<SearchedNode> nodes = {};
  std::string choice = {};  ///< How replicas were chosen: by which voting table, for example.
  std::map<std::string, std::uint32_t> word_pages = {};  ///< For each word of the query, the most pages on one node.

  /// True if every slice was searched.
  bool is_complete() const { return status && slices_searched == slices; }
};

}  // namespace fjord
