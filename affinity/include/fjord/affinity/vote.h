#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/affinity/voting_table.h"

namespace fjord::affinity {

/// Shares of the replicas of a slice, from what they say of their load [CALB 2019, 6]. The shares add up to 1; votes
/// against a replica are divided by its share, so that a replica with much load is chosen less often.
class Multipliers {
 public:
  struct Options {
    double step = 0.01;  ///< Beta: change of a share for a difference in utilisation of 1.
    /// No share falls below this part of an equal one: the replica must be asked now and then to be seen to be idle.
    double floor = 0.2;
  };

  explicit Multipliers(unsigned replicas) : Multipliers(replicas, Options{}) {}
  Multipliers(unsigned replicas, Options options);

  /// Takes in an answer of `replica`, which says its utilisation: 0 idle, 1 saturated.
  void on_answer(unsigned replica, double utilisation);
  double share(unsigned replica) const { return shares_[replica]; }
  std::span<const double> shares() const { return shares_; }

 private:
  void normalise();

  Options options_;
  std::vector<double> shares_;
  std::vector<double> utilisation_;  // As last heard.
};

/// The replica with the least `votes[r] / shares[r]`. Of several with as few, the fingerprint chooses one: it falls
/// into one of their segments, which are as wide as their shares. `shares` are above 0 and as many as `votes`.
unsigned choose_replica(std::span<const double> votes, std::span<const double> shares, std::uint64_t fingerprint);

/// Adds the weights of the words to `votes`, one for each replica; unknown words weigh nothing. `floor_part`: part of
/// the pages of a list that is added to each weight of a known word. With multipliers it must be above 0, because a
/// vote of 0 stays 0 whatever the share, and such a replica could not shed queries.
void add_votes(const VotingTable& table, std::span<const WordId> words, const ListPages& pages, double floor_part,
               std::span<double> votes);

/// The floor with multipliers.
inline constexpr double kFloorPart = 0.02;

}  // namespace fjord::affinity
