#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "fjord/balancer/model.h"
#include "fjord/balancer/plan.h"

namespace fjord::balancer {

/// The model while a step changes it. The planner applies each move, keeps the loads of nodes up to date, and collects
/// the moves in a plan.
///
/// A slice keeps its index when other slices are split and merged. Each operation takes time logarithmic in the number
/// of nodes, and at most linear in the number of slices of one node.
class Planner {
 public:
  using Index = std::uint32_t;

  /// Copies the model.
  explicit Planner(const BalanceModel& model);

  const BalanceModel& model() const { return model_; }
  const Slice& slice(Index index) const { return model_.slices[index]; }
  /// Returns the number of slices. Slices that were merged into others do not count.
  std::size_t count() const { return count_; }
  /// Returns an upper bound: every index that was ever given is below it. is_alive() tells which still name a slice.
  Index index_end() const { return static_cast<Index>(model_.slices.size()); }
  bool is_alive(Index index) const { return alive_[index]; }
  /// Returns the slice behind this one in the order of ranges; none for the last slice.
  std::optional<Index> next(Index index) const;
  std::optional<Index> previous(Index index) const;
  /// Returns the slices of which the node holds a replica, in no particular order.
  const std::vector<Index>& slices_of(std::uint16_t node) const { return by_node_[node]; }

  /// Returns the load of a node divided by its capacity.
  double load(std::uint16_t node) const { return loads_[node]; }
  /// Returns the load of all nodes together over the capacity of the usable nodes.
  double mean() const { return mean_; }
  double imbalance() const;
  /// Returns pairs (load, node) of the usable nodes, ascending by load.
  const std::set<std::pair<double, std::uint16_t>>& by_load() const { return by_load_; }
  std::uint16_t hottest() const { return by_load_.rbegin()->second; }
  std::uint16_t coolest() const { return by_load_.begin()->second; }
  /// Returns how many bytes the step may still move.
  std::uint64_t budget() const { return budget_; }

  /// Returns how many rows of the table of overrides are in use, and how many are left.
  std::size_t rows() const { return rows_; }
  std::size_t rows_left() const { return model_.rows_max - std::min(rows_, model_.rows_max); }
  /// Returns how many more rows are in use when the replica on `from` has moved to `to`. A replica of a node that is
  /// gone needs none: the cluster itself finds it another place.
  std::int64_t rows_added(Index index, std::uint16_t from, std::uint16_t to) const;

  /// Returns true if the replica of the slice on `from` may move to `to`. The budget and the rows are not looked at;
  /// see may_move().
  bool is_allowed(Index index, std::uint16_t from, std::uint16_t to) const;
  /// Returns true if is_allowed() does, the bytes of the slice are within the budget, and the table of overrides has
  /// room. Moves off a node that is gone need neither.
  bool may_move(Index index, std::uint16_t from, std::uint16_t to) const;
  /// Returns true if an additional replica of the slice may be placed on `to`.
  bool may_hold(Index index, std::uint16_t to) const;

  /// Moves a replica. Requires that may_move() returns true.
  void move(Index index, std::uint16_t from, std::uint16_t to, MoveReason reason);
  /// Places the first or a further replica of a slice. Requires that may_hold() returns true.
  void place(Index index, std::uint16_t to, MoveReason reason);
  /// Shifts `share` of all reads of the slice from one holder to another.
  void shift_reads(Index index, std::uint16_t from, std::uint16_t to, double share);
  /// Cuts a slice before bucket `at`. Returns the index of the second part; the first part keeps `index`.
  Index split(Index index, std::uint32_t at, MoveReason reason);
  /// Joins a slice with the slice behind it, which must have the same holders and read shares.
  void merge_with_next(Index index);

  Plan take_plan();

 private:
  void add_load(std::uint16_t node, double load);
  void drop(std::uint16_t node, Index index);
  void record(const Move& move);
  /// Returns how much the slice's replica on the holder adds to the load of that node, divided by the node's capacity.
  double load_of(Index index, const Holder& holder) const;

  static constexpr Index kNone = UINT32_MAX;

  BalanceModel model_;  // Slices are in the order of their indexes; links_ gives the order of ranges.
  std::vector<std::pair<Index, Index>> links_;  // The previous and the next slice of each slice, by range.
  std::vector<bool> alive_;
  std::size_t count_ = 0;
  std::vector<std::vector<Index>> by_node_;
  std::vector<double> loads_;
  std::set<std::pair<double, std::uint16_t>> by_load_;
  double mean_ = 0.0;
  std::uint64_t budget_ = 0;
  std::size_t rows_ = 0;
  Plan plan_;
};

/// Moves every replica off nodes that are gone, hottest slice first, each onto the coolest node that may hold it. Every
/// algorithm begins a step with this, because a slice that lacks replicas is at risk.
void leave_gone_nodes(Planner& planner);

/// Places the replicas that slices lack, each onto the node that `choose(index)` returns. If it returns none, the slice
/// goes on lacking the replica.
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

/// Returns the coolest node that may hold a further replica of the slice.
std::optional<std::uint16_t> coolest_for(const Planner& planner, Planner::Index index);

/// Returns the bucket before which a slice is best cut in two: next to its hottest bucket if that has most of the load,
/// else in the middle. Returns none if the slice has only one bucket.
std::optional<std::uint32_t> cut_of(const Planner& planner, Planner::Index index);

}  // namespace fjord::balancer
