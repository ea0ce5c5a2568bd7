#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fjord/balancer/model.h"
#include "fjord/balancer/plan.h"

namespace fjord::balancer {

/// The model while a step changes it: applies each move, keeps the loads of nodes up to date, and writes the plan down.
///
/// A slice has an index that stays when others are split and merged. Each operation takes logarithmic time in the
/// number of nodes, and time in proportion to the slices of one node at most.
class Planner {
 public:
  using Index = std::uint32_t;

  /// Copies what it needs of the model.
  explicit Planner(const BalanceModel& model);

  const BalanceModel& model() const { return model_; }
  const Slice& slice(Index index) const { return model_.slices[index]; }
  /// Number of slices that there are. Indexes of slices that were merged away do not count.
  std::size_t count() const { return count_; }
  /// All indexes that were ever given are below this; see is_alive().
  Index index_end() const { return static_cast<Index>(model_.slices.size()); }
  bool is_alive(Index index) const { return alive_[index]; }
  /// The slice behind this one; none at the end.
  std::optional<Index> next(Index index) const;
  std::optional<Index> previous(Index index) const;
  /// Slices of which the node holds a replica, in no order.
  const std::vector<Index>& slices_of(std::uint16_t node) const { return by_node_[node]; }

  /// Load of a node over its capacity.
  double load(std::uint16_t node) const { return loads_[node]; }
  /// Mean load of the usable nodes over their capacity.
  double mean() const { return mean_; }
  double imbalance() const;
  /// Usable nodes, ascending by load.
  const std::set<std::pair<double, std::uint16_t>>& by_load() const { return by_load_; }
  std::uint16_t hottest() const { return by_load_.rbegin()->second; }
  std::uint16_t coolest() const { return by_load_.begin()->second; }
  /// Bytes that the step may still move.
  std::uint64_t budget() const { return budget_; }

  /// True if the replica of the slice on `from` may go to `to`, whatever it weighs.
  bool is_allowed(Index index, std::uint16_t from, std::uint16_t to) const;
  /// The same, and the bytes of the slice are within the budget. What leaves a node that is gone is not counted.
  bool may_move(Index index, std::uint16_t from, std::uint16_t to) const;
  /// True if a new replica of the slice, which moves from no other node, may be placed on `to`.
  bool may_hold(Index index, std::uint16_t to) const;

  /// Moves a replica. Requires may_move().
  void move(Index index, std::uint16_t from, std::uint16_t to, MoveReason reason);
  /// Places the first or a further replica of a slice. Requires may_hold().
  void place(Index index, std::uint16_t to, MoveReason reason);
  /// Shifts `share` of the slice's reads.
  void shift_reads(Index index, std::uint16_t from, std::uint16_t to, double share);
  /// Cuts a slice before bucket `at`; returns the second part.
  Index split(Index index, std::uint32_t at, MoveReason reason);
  /// Joins a slice with the one behind it, which must have the same holders and read shares.
  void merge_with_next(Index index);

  Plan take_plan();

 private:
  void add_load(std::uint16_t node, double load);
  void drop(std::uint16_t node, Index index);
  void record(const Move& move);
  /// A node's change of load that the holder makes, over its capacity.
  double load_of(Index index, const Holder& holder) const;

  static constexpr Index kNone = UINT32_MAX;

  BalanceModel model_;                          // Slices that were split off are at the end; links_ gives the order.
  std::vector<std::pair<Index, Index>> links_;  // Previous and next.
  std::vector<bool> alive_;
  std::size_t count_ = 0;
  std::vector<std::vector<Index>> by_node_;
  std::vector<double> loads_;
  std::set<std::pair<double, std::uint16_t>> by_load_;
  double mean_ = 0.0;
  std::uint64_t budget_ = 0;
  Plan plan_;
};

/// Moves everything off nodes that are gone, each replica onto the coolest node that may hold it, hottest slice first.
/// Every algorithm begins a step with it: a slice without its replicas is at risk.
void leave_gone_nodes(Planner& planner);

/// Places the replicas that slices lack, each onto the node that `choose(index)` gives; none: it stays without.
template <typename Choose>
void place_missing(Planner& planner, Choose choose) {
  for (Planner::Index index = 0; index < planner.index_end(); ++index) {
    while (planner.is_alive(index) && planner.slice(index).holders.size() < planner.model().redundancy) {
      const std::optional<std::uint16_t> node = choose(index);
      if (!node) break;
      planner.place(index, *node, MoveReason::FirstPlace);
    }
  }
}

/// The coolest node that may hold a replica of the slice.
std::optional<std::uint16_t> coolest_for(const Planner& planner, Planner::Index index);

/// The bucket before which a slice is best cut in two: beside its hottest bucket if that has most of its load, else in
/// the middle. None if it has only one bucket.
std::optional<std::uint32_t> cut_of(const Planner& planner, Planner::Index index);

}  // namespace fjord::balancer
