#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/affinity/cache_changes.h"
#include "fjord/affinity/query_log.h"
#include "fjord/affinity/voting_table.h"

namespace fjord::affinity {

/// What a broker believes to be in the cache of each replica. Replicas report with their answers which lists entered
/// and left. The broker then votes with the pages that would be missed now, while a voting table has only what is
/// missed on average.
///
/// The memory is bounded by the number of words.
class ShadowCaches {
 public:
  /// `hashes`: hash of the text of each word, equal on all brokers. It decides which replica a word prefers that
  /// neither a cache nor the table has.
  /// Lifetime: table, pages and hashes outlive the object.
  ShadowCaches(const VotingTable& table, const ListPages& pages, const std::vector<std::uint64_t>& hashes);

  void apply(unsigned replica, CacheChange change);
  /// Forgets what was believed about a replica. To be called when the replica has restarted.
  void clear(unsigned replica);
  bool contains(unsigned replica, WordId word) const { return (holders_[word] >> replica & 1) != 0; }

  /// Adds the votes of the words. If the list of a word is believed to be in some cache, its pages count against the
  /// replicas without it. If it is in no cache, the table's weights count; if the table lacks the word, the word
  /// prefers one replica by its hash. `floor_part` is as in the other add_votes() (vote.h).
  void add_votes(std::span<const WordId> words, double floor_part, std::span<double> votes) const;

 private:
  const VotingTable& table_;
  const ListPages& pages_;
  const std::vector<std::uint64_t>& hashes_;
  std::vector<std::uint64_t> holders_;  // By WordId; bit r: replica r holds the list.
};

}  // namespace fjord::affinity
