#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/affinity/cache_changes.h"
#include "fjord/affinity/query_log.h"
#include "fjord/affinity/voting_table.h"

namespace fjord::affinity {

/// What a broker believes to be in the cache of each replica, from lists of words that entered and left, which come
/// with answers. It votes with pages that would be missed now, where a table has only what is missed on average.
///
/// Its memory is bounded by the number of words.
class ShadowCaches {
 public:
  /// `hashes`: of the text of each word, equal on all brokers; it decides where a word goes that nobody knows.
  /// Lifetime: table, pages and hashes outlive it.
  ShadowCaches(const VotingTable& table, const ListPages& pages, const std::vector<std::uint64_t>& hashes);

  void apply(unsigned replica, CacheChange change);
  /// Forgets what was believed of a replica; for one that restarted.
  void clear(unsigned replica);
  bool contains(unsigned replica, WordId word) const { return (holders_[word] >> replica & 1) != 0; }

  /// Adds the votes of the words. A list that is believed in some cache costs its pages on replicas that do not have
  /// it, and where it is, nothing. For one that is in none, the table votes as far as it knows the word, and otherwise
  /// the word prefers one replica by its hash. `floor_part` as in add_votes().
  void add_votes(std::span<const WordId> words, double floor_part, std::span<double> votes) const;

 private:
  const VotingTable& table_;
  const ListPages& pages_;
  const std::vector<std::uint64_t>& hashes_;
  std::vector<std::uint64_t> holders_;  // By WordId; bit r: replica r holds the list.
};

}  // namespace fjord::affinity
