#include "fjord/affinity/voting_table.h"

#include <algorithm>

#include "fjord/common/check.h"

namespace fjord::affinity {

VotingTable::VotingTable(unsigned replicas, std::size_t words) : replicas_(replicas), rows_(words, kNoRow) {
  FJORD_CHECK(replicas > 0);
}

void VotingTable::set(WordId word, std::span<const float> weights) {
  FJORD_CHECK(word < rows_.size() && weights.size() == replicas_);
  if (!knows(word)) {
    rows_[word] = static_cast<std::uint32_t>(known_words());
    weights_.resize(weights_.size() + replicas_);
  }
  std::copy(weights.begin(), weights.end(), weights_.begin() + std::ptrdiff_t{rows_[word]} * replicas_);
}

}  // namespace fjord::affinity
