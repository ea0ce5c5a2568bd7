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
  std::vector<std::string> vocabulary;  ///< By WordId, sorted.
  affinity::ListPages pages;
  std::vector<std::uint64_t> hashes;  ///< By WordId: of its text.
  affinity::QueryLog log;
  std::size_t skipped = 0;  ///< Lines that are no query: empty, not UTF-8, without a word.

  /// The queries from `begin` to before `end`.
  affinity::QueryLog part(std::size_t begin, std::size_t end) const;
};

/// Reads lines that are a query, or a number, a tab and a query. Words are what a search looks up. Errors:
/// InvalidArgument if there is no query.
Result<AffinityLog> read_affinity_log(std::string_view text);

/// Lines WORD<tab>PAGES. Errors: InvalidArgument with the line.
Result<std::map<std::string, std::uint32_t, std::less<>>> read_word_pages(std::string_view text);

}  // namespace fjord::cli
