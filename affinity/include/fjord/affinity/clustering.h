#pragma once

#include <cstdint>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/affinity/voting_table.h"
#include "fjord/common/random.h"
#include "fjord/common/result.h"

namespace fjord::affinity {

/// The replica that each word prefers, by WordId; kNoReplica for words that are left out.
using Clustering = std::vector<std::uint8_t>;
inline constexpr std::uint8_t kNoReplica = 255;
inline constexpr unsigned kReplicasMax = 64;

/// Words seen less often in the training log are left out of a table: they would only add noise [CALB 2019, 5.3].
inline constexpr std::uint32_t kOccurrencesMin = 4;

/// The table of a clustering: a word is expected in the cache of the replica that it prefers and in no other
/// [CALB 2019, definition 1].
VotingTable binary_table(const Clustering& clustering, const ListPages& pages, unsigned replicas);

/// Each word that occurs often enough prefers a replica at random.
Clustering random_clustering(const QueryLog& log, const ListPages& pages, unsigned replicas, Random& random);

/// Gives each word of the clustering, with probability `part`, another replica at random (maybe the same).
Clustering degrade(const Clustering& clustering, unsigned replicas, double part, Random& random);

/// Cost of the edges between words and queries that the clustering cuts, over the cost of all: an edge costs as many
/// pages as the word's list has, and each query goes where it cuts least [CALB 2019, 3.2].
double cut_part(const QueryLog& log, const ListPages& pages, const Clustering& clustering, unsigned replicas);

/// Pages of the lists that prefer the fullest replica, over the mean.
double mass_imbalance(const Clustering& clustering, const ListPages& pages, unsigned replicas);

struct PartitionOptions {
  unsigned replicas = 5;
  double tolerance = 0.03;  ///< The fullest replica has at most this part more pages than the mean.
  /// If above 0, the pages accessed in the log by words that prefer a replica are balanced too, to about this part: a
  /// replica with the hottest words is not the busiest then. Not part of [CALB 2019].
  double load_tolerance = 0.0;
  int cuts = 4;  ///< Partitions of which METIS returns the best.
  std::uint64_t seed = 1;
};

/// Parts the graph of words and queries into clusters with few cut edges and equal pages, by METIS (k-way). Equal
/// queries are one vertex. Words seen less than kOccurrencesMin times are left out.
/// Errors: InvalidArgument if there are fewer such words than replicas, or the tolerance cannot be kept.
Result<Clustering> partition(const QueryLog& log, const ListPages& pages, const PartitionOptions& options);

}  // namespace fjord::affinity
