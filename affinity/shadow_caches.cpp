#include "fjord/affinity/shadow_caches.h"

#include "fjord/affinity/clustering.h"
#include "fjord/common/check.h"

namespace fjord::affinity {

ShadowCaches::ShadowCaches(const VotingTable& table, const ListPages& pages, const std::vector<std::uint64_t>& hashes)
    : table_(table), pages_(pages), hashes_(hashes), holders_(pages.size(), 0) {
  FJORD_CHECK(table.replicas() <= kReplicasMax && hashes.size() == pages.size());
}

void ShadowCaches::apply(unsigned replica, CacheChange change) {
  const std::uint64_t bit = std::uint64_t{1} << replica;
  if (change.entered) {
    holders_[change.word] |= bit;
  } else {
    holders_[change.word] &= ~bit;
  }
}

void ShadowCaches::clear(unsigned replica) {
  for (std::uint64_t& holders : holders_) holders &= ~(std::uint64_t{1} << replica);
}

void ShadowCaches::add_votes(std::span<const WordId> words, double floor_part, std::span<double> votes) const {
  for (const WordId word : words) {
    const double pages = pages_[word];
    const std::span<const float> weights = table_.weights(word);
    const std::uint64_t preferred = hashes_[word] % votes.size();
    for (std::size_t r = 0; r < votes.size(); ++r) {
      votes[r] += floor_part * pages;
      if (holders_[word] != 0) {
        votes[r] += (holders_[word] >> r & 1) != 0 ? 0.0 : pages;
      } else if (!weights.empty()) {
        votes[r] += static_cast<double>(weights[r]);
      } else {
        votes[r] += r == preferred ? 0.0 : pages;
      }
    }
  }
}

}  // namespace fjord::affinity
