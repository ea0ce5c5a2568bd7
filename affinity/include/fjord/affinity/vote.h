#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fjord/affinity/query_log.h"
#include "fjord/affinity/voting_table.h"

namespace fjord::affinity {

/// Shares of the replicas of a slice, computed from the load that they report [CALB 2019, 6]. The shares add up to 1.
/// Votes against a replica are divided by its share, so that a replica with much load is chosen less often.
class Multipliers {
 public:
  struct Options {
    double step = 0.01;  ///< Beta: how much a share changes with one answer for a difference in utilisation of 1.
    /// No share falls below this part of an equal share: a replica that gets no queries could not report that it is
    /// idle.
    double floor = 0.2;
    /// A report counts for less the older it is: by this part for each time that all replicas might have answered. A
    /// replica that got few queries since a busy moment would else seem busy, and would get none for ever.
    double fade = 0.05;
    /// For each time that all replicas might have answered, the shares return by this part to equal ones. So reports
    /// of idle replicas, which follow chance and not queries, do not add up.
    double relax = 0.001;
  };

  explicit Multipliers(unsigned replicas) : Multipliers(replicas, Options{}) {}
  Multipliers(unsigned replicas, Options options);

  /// Adjusts the shares after an answer of `replica`, which reports its utilisation: 0 idle, 1 saturated.
  void on_answer(unsigned replica, double utilisation);
  double share(unsigned replica) const { return shares_[replica]; }
  std::span<const double> shares() const { return shares_; }

 private:
  void normalise();

  Options options_;
  std::vector<double> shares_;
  std::vector<double> utilisation_;  // By replica, as it last reported.
};

/// Shares of the storage nodes of a cluster, as Multipliers has them of the replicas of a slice. A node is too busy
/// whatever it holds, so its share is one for all of its slices.
class NodeShares {
 public:
  /// The nodes of the cluster. If they are not those of the last call, all have equal shares again.
  void follow(const std::vector<std::uint16_t>& nodes);
  /// Takes in an answer of a node, which says its utilisation: 0 idle, 1 saturated. Unknown nodes are passed over.
  void on_answer(std::uint16_t node, double utilisation);
  /// Above 0; of an unknown node, a little less than an equal one.
  double share(std::uint16_t node) const;
  /// A little less than an equal share.
  double any_share() const { return 1.0 / static_cast<double>(places_.size() + 1); }

 private:
  std::map<std::uint16_t, unsigned> places_;  // By node: its place in `multipliers_`.
  std::optional<Multipliers> multipliers_;
};

/// The replica with the least `votes[r] / shares[r]`. Of several with as few, the fingerprint chooses one: it falls
/// into one of their segments, which are as wide as their shares. `shares` are above 0 and as many as `votes`.
unsigned choose_replica(std::span<const double> votes, std::span<const double> shares, std::uint64_t fingerprint);

/// Adds the weights of the words to `votes`, which has one element for each replica; unknown words add nothing.
/// `floor_part` is the part of the pages of a list that is added to each weight of a known word. With multipliers it
/// must be above 0: a vote of 0 would stay 0 whatever the share, so that the replica could not get fewer queries.
void add_votes(const VotingTable& table, std::span<const WordId> words, const ListPages& pages, double floor_part,
               std::span<double> votes);

/// The `floor_part` to use with multipliers.
inline constexpr double kFloorPart = 0.02;

}  // namespace fjord::affinity
