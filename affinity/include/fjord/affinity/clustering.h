#pragma once

#include <cstdint>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/affinity/voting_table.h"
#include "fjord/common/random.h"
#include "fjord/common/result.h"

namespace fjord::affinity {

/// The replica that each word prefers, by WordId; kNoReplica for words that have no preference.
using Clustering = std::vector<std::uint8_t>;
inline constexpr std::uint8_t kNoReplica = 255;
inline constexpr unsigned kReplicasMax = 64;

/// Words seen less often in the training log are left out of a table, because they would only add noise [CALB 2019,
/// 5.3].
inline constexpr std::uint32_t kOccurrencesMin = 4;

/// Returns the table of a clustering: a word is expected in the cache of the replica that it prefers and in no other
/// [CALB 2019, definition 1].
VotingTable binary_table(const Clustering& clustering, const ListPages& pages, unsigned replicas);

/// Assigns each word that occurs at least kOccurrencesMin times to a random replica.
Clustering random_clustering(const QueryLog& log, const ListPages& pages, unsigned replicas, Random& random);

/// Returns `clustering` changed: each word moves, with probability `part`, to a random replica (maybe the one that it
/// had).
Clustering degrade(const Clustering& clustering, unsigned replicas, double part, Random& random);

/// Returns the cost of the edges between words and queries that the clustering cuts, over the cost of all edges. An
/// edge costs as many pages as the word's list has; each query is assigned to the replica where it cuts least [CALB
/// 2019, 3.2].
double cut_part(const QueryLog& log, const ListPages& pages, const Clustering& clustering, unsigned replicas);

/// Returns the pages of the lists that prefer the fullest replica, over the mean of all replicas.
double mass_imbalance(const Clustering& clustering, const ListPages& pages, unsigned replicas);

struct PartitionOptions {
  unsigned replicas = 5;
  double tolerance = 0.03;  ///< How much the fullest replica's pages may exceed the mean, as a part of it.
  /// Tolerated excess of the pages that the log accesses on one replica, as a part of the mean; 0: not limited. With a
  /// limit, the replica with the hottest words does not become the busiest one. Not part of [CALB 2019].
  double load_tolerance = 0.0;
  int cuts = 4;  ///< Number of partitions that METIS computes; it returns the best of them.
  std::uint64_t seed = 1;
};

/// Partitions the graph of words and queries with METIS (k-way) into one cluster for each replica, with few cut edges
/// and about equal pages. Equal queries are one vertex. Words seen less than kOccurrencesMin times are left out.
/// Errors: InvalidArgument if there are fewer words than replicas, or METIS cannot keep the tolerance.
Result<Clustering> partition(const QueryLog& log, const ListPages& pages, const PartitionOptions& options);

}  // namespace fjord::affinity
