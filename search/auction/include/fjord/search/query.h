#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::search {

/// How a keyword matches a query.
enum class MatchKind : std::uint8_t {
  Broad = 0,   ///< All words of the keyword are in the query.
  Phrase = 1,  ///< All words of the keyword are in the query in this order, directly one behind the other.
  Exact = 2,   ///< The query consists of the words of the keyword only.
};

/// Limits of a query. A longer one is refused.
inline constexpr std::size_t kQueryBytesMax = 2048;
inline constexpr std::size_t kQueryWordsMax = 32;

/// Returns the words of a text in lower case (full case folding, composed form). Spaces, punctuation and bytes that are
/// not UTF-8 separate words.
std::vector<std::string> fold_words(std::string_view text);
/// Returns the word without diacritics: "café" gives "cafe".
std::string without_diacritics(std::string_view word);

/// One form of a query: its words in their order, and each word once.
class QueryVariant {
 public:
  /// `words` has a space between two words, as text() has.
  explicit QueryVariant(std::string_view words);

  const std::vector<std::string>& words() const { return words_; }
  /// Returns the words, each once.
  const std::vector<std::string>& distinct_words() const { return distinct_; }
  std::string text() const;
  /// Returns the place of the first occurrence of `word`; npos if the query does not have it.
  std::size_t find(std::string_view word) const;
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

 private:
  std::vector<std::string> words_;
  std::vector<std::string> distinct_;  // The words, sorted and each once.
};

/// Returns the forms of a query that are searched: as it is, and without diacritics if that differs. Errors:
/// InvalidArgument if it is too long, not UTF-8, or has no word.
Result<std::vector<QueryVariant>> parse_query(std::string_view text);

/// True if the keyword with these words (folded, a space between two) matches the query. A keyword without words
/// matches nothing.
bool matches(MatchKind kind, std::string_view keyword_words, const QueryVariant& query);

enum class Device : std::uint8_t { Unknown = 0, Phone = 1, Desktop = 2, Tablet = 3 };

/// Describes who searches, and where. An unknown value takes no part in the auction.
struct SearchContext {
  Device device = Device::Unknown;
  std::string language;  ///< Folded; empty: unknown.
  std::string region;
  int hour = -1;  ///< 0 to 23
  int age = -1;   ///< In years.
  std::vector<std::string> interests;

  /// Keys: device (phone, desktop, tablet), language, region, hour, age, interests (words). Errors: InvalidArgument
  /// that names the key and what it may be.
  static Result<SearchContext> parse(const std::map<std::string, std::string>& pairs);
};

}  // namespace fjord::search
