#pragma once

#include <limits>
#include <span>
#include <vector>

#include "fjord/affinity/query_log.h"

namespace fjord::affinity {

/// Votes of words against replicas: the weight of a word against a replica is the number of pages that the replica is
/// expected to miss when the word is sent there [CALB 2019, 2].
class VotingTable {
 public:
  /// Makes a table without weights for any word. All WordIds that get weights are below `words`; others may be looked
  /// up.
  VotingTable(unsigned replicas, std::size_t words);

  unsigned replicas() const { return replicas_; }
  /// Returns the number of words that have weights.
  std::size_t known_words() const { return weights_.size() / replicas_; }
  bool knows(WordId word) const { return word < rows_.size() && rows_[word] != kNoRow; }
  /// Returns the weights against replicas 0, 1, ...; empty if the table does not know the word.
  std::span<const float> weights(WordId word) const {
    if (!knows(word)) return {};
    return {weights_.data() + std::size_t{rows_[word]} * replicas_, replicas_};
  }
  /// Sets the weights of a word below `words`, one for each replica.
  void set(WordId word, std::span<const float> weights);

 private:
  static constexpr std::uint32_t kNoRow = std::numeric_limits<std::uint32_t>::max();

  unsigned replicas_;
  std::vector<std::uint32_t> rows_;  // The row of `weights_` of each word, by WordId.
  std::vector<float> weights_;
};

}  // namespace fjord::affinity
