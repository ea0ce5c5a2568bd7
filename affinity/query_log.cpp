#include "fjord/affinity/query_log.h"

#include <algorithm>

namespace fjord::affinity {

void QueryLog::add(std::vector<WordId> words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  fingerprints_.push_back(affinity::fingerprint(words));
  words_.insert(words_.end(), words.begin(), words.end());
  ends_.push_back(words_.size());
}

std::vector<std::uint32_t> count_occurrences(const QueryLog& log, std::size_t words) {
  std::vector<std::uint32_t> occurrences(words);
  for (const WordId word : log.accesses()) ++occurrences[word];
  return occurrences;
}

}  // namespace fjord::affinity
