#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/common/result.h"

namespace fjord::cli {

/// Queries of a file as a log of numbered words, with the pages of each word's list.
struct AffinityLog {
  std::vector<std::string> vocabulary;  ///< Sorted; the place of a word is its WordId.
  affinity::ListPages pages;
  std::vector<std::uint64_t> hashes;  ///< By WordId: hash of the word's text.
  affinity::QueryLog log;
  std::size_t skipped = 0;  ///< Number of lines without a query: empty, not UTF-8, or without a word.

  /// Returns the queries from `begin` to before `end`.
  affinity::QueryLog part(std::size_t begin, std::size_t end) const;
};

/// Reads lines QUERY or NUMBER<tab>QUERY. The words of a query are those that a search looks up. Errors:
/// InvalidArgument if there is no query.
Result<AffinityLog> read_affinity_log(std::string_view text);

/// Reads lines WORD<tab>PAGES. Errors: InvalidArgument that quotes the malformed line.
Result<std::map<std::string, std::uint32_t, std::less<>>> read_word_pages(std::string_view text);

}  // namespace fjord::cli
