#include "fjord/affinity/clustering.h"

#include <algorithm>
#include <numeric>

#include "fjord/common/check.h"

namespace fjord::affinity {

VotingTable binary_table(const Clustering& clustering, const ListPages& pages, unsigned replicas) {
  VotingTable table(replicas, clustering.size());
  std::vector<float> weights(replicas);
  for (WordId word = 0; word < clustering.size(); ++word) {
    if (clustering[word] == kNoReplica) continue;
    std::fill(weights.begin(), weights.end(), static_cast<float>(pages[word]));
    weights[clustering[word]] = 0.0F;
    table.set(word, weights);
  }
  return table;
}

Clustering random_clustering(const QueryLog& log, const ListPages& pages, unsigned replicas, Random& random) {
  FJORD_CHECK(replicas > 0 && replicas <= kReplicasMax);
  const std::vector<std::uint32_t> occurrences = count_occurrences(log, pages.size());
  Clustering clustering(pages.size(), kNoReplica);
  for (WordId word = 0; word < clustering.size(); ++word) {
    if (occurrences[word] >= kOccurrencesMin) clustering[word] = static_cast<std::uint8_t>(random.below(replicas));
  }
  return clustering;
}

Clustering degrade(const Clustering& clustering, unsigned replicas, double part, Random& random) {
  Clustering result = clustering;
  for (std::uint8_t& replica : result) {
    if (replica != kNoReplica && random.chance(part)) replica = static_cast<std::uint8_t>(random.below(replicas));
  }
  return result;
}

double cut_part(const QueryLog& log, const ListPages& pages, const Clustering& clustering, unsigned replicas) {
  std::vector<std::uint64_t> at(replicas);
  std::uint64_t all = 0;
  std::uint64_t kept = 0;
  for (std::size_t query = 0; query < log.size(); ++query) {
    std::fill(at.begin(), at.end(), 0);
    for (const WordId word : log.words(query)) {
      if (clustering[word] != kNoReplica) at[clustering[word]] += pages[word];
    }
    all += std::accumulate(at.begin(), at.end(), std::uint64_t{0});
    kept += *std::max_element(at.begin(), at.end());
  }
  return all == 0 ? 0.0 : 1.0 - static_cast<double>(kept) / static_cast<double>(all);
}

double mass_imbalance(const Clustering& clustering, const ListPages& pages, unsigned replicas) {
  std::vector<std::uint64_t> mass(replicas);
  for (WordId word = 0; word < clustering.size(); ++word) {
    if (clustering[word] != kNoReplica) mass[clustering[word]] += pages[word];
  }
  const auto sum = static_cast<double>(std::accumulate(mass.begin(), mass.end(), std::uint64_t{0}));
  const auto most = static_cast<double>(*std::max_element(mass.begin(), mass.end()));
  return sum == 0.0 ? 1.0 : most * static_cast<double>(replicas) / sum;
}

}  // namespace fjord::affinity
