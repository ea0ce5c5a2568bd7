#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "fjord/search/query.h"

namespace fjord::search {

/// Limits of a list of synonyms. A larger list is refused.
inline constexpr std::size_t kSynonymsBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kSynonymTermWordsMax = 4;
/// A query is searched in at most this many forms.
inline constexpr std::size_t kQueryFormsMax = 16;

/// Terms that stand for each other in queries, as an operator lists them. A term has one to four words.
class Synonyms {
 public:
  /// Reads lines TERM, TERM, ...: the terms of a line stand for each other. "#" begins a comment. Errors:
  /// InvalidArgument that names the line.
  static Result<Synonyms> parse(std::string_view text);

  /// Returns the number of terms that have another term.
  std::size_t terms() const { return others_.size(); }

  /// Adds forms of the query in which a term has been replaced by one that stands for it, each form once, until there
  /// are kQueryFormsMax. Forms with fewer replaced terms come first. Each new form is followed by the same without
  /// diacritics, if that differs.
  void add_forms(std::vector<QueryVariant>& forms) const;

 private:
  using Words = std::vector<std::string>;
  std::map<std::string, std::vector<Words>, std::less<>> others_;  // By term: the words that stand for it.
};

}  // namespace fjord::search
