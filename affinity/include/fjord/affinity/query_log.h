#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/common/hash.h"

namespace fjord::affinity {

/// Number of a word, from 0 on without gaps.
using WordId = std::uint32_t;

/// Pages of the index file that the list of each word occupies, by WordId. Each is at least 1.
using ListPages = std::vector<std::uint32_t>;

/// Returns the fingerprint of a query: equal words in equal order give equal numbers.
inline std::uint64_t fingerprint(std::span<const WordId> words) {
  std::uint64_t value = words.size();
  for (const WordId word : words) value = mix64(value, word);
  return value;
}

/// A sequence of queries. A query is a set of words: ascending, each word once; words with pinned lists are left out.
class QueryLog {
 public:
  /// Appends a query; sorts its words and drops repetitions.
  void add(std::vector<WordId> words);

  std::size_t size() const { return fingerprints_.size(); }
  std::span<const WordId> words(std::size_t query) const {
    return {words_.data() + ends_[query], ends_[query + 1] - ends_[query]};
  }
  std::uint64_t fingerprint(std::size_t query) const { return fingerprints_[query]; }
  /// Returns the words of all queries, one after the other, with repetitions.
  std::span<const WordId> accesses() const { return words_; }

 private:
  std::vector<WordId> words_;
  std::vector<std::size_t> ends_{0};
  std::vector<std::uint64_t> fingerprints_;
};

/// Returns how often each word occurs in the log, for WordIds below `words`.
std::vector<std::uint32_t> count_occurrences(const QueryLog& log, std::size_t words);

}  // namespace fjord::affinity
