// Algorithms that do not look at loads while they run: `random` and `bin-packing` [KBD 2020, 2.4 and 6.5].

#include <algorithm>
#include <numeric>

#include "algorithms/all.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

/// Returns a random node that may hold the slice.
std::optional<std::uint16_t> random_node(const Planner& planner, Planner::Index index, Random& random) {
  std::vector<std::uint16_t> nodes;
  for (const auto& [load, node] : planner.by_load()) {
    if (planner.may_hold(index, node)) nodes.push_back(node);
  }
  if (nodes.empty()) return std::nullopt;
  std::sort(nodes.begin(), nodes.end());
  return nodes[random.below(nodes.size())];
}

/// Cuts each slice into single buckets and places each bucket on random nodes. Merges empty slices with their
/// neighbours. A requested step moves buckets that have nodes to random nodes, too.
class RandomPlacement final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "random"; }
  std::string_view summary() const override { return "each bucket on random nodes; ignores load"; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    Planner planner(model);
    run(planner, random);
    return planner.take_plan();
  }
  Plan step(const BalanceModel& model, Memory&, Random& random) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    if (model.is_requested) scatter(planner, random);
    run(planner, random);
    return planner.take_plan();
  }

 private:
  /// Draws a node for each replica and moves it there, if the bytes of the step permit it.
  static void scatter(Planner& planner, Random& random) {
    for (Planner::Index index = 0; index < planner.index_end(); ++index) {
      const Holders before = planner.slice(index).holders;
      for (const Holder& holder : before) {
        const auto node = static_cast<std::uint16_t>(random.below(planner.model().nodes.size()));
        if (planner.may_move(index, holder.node, node)) planner.move(index, holder.node, node, MoveReason::Rule);
      }
    }
  }

  static void run(Planner& planner, Random& random) {
    for (Planner::Index index = 0; index < planner.index_end(); ++index) {
      // The rest of the slice gets an index of its own, to which the loop comes later.
      const Slice& slice = planner.slice(index);
      if (slice.holders.empty() && slice.bytes > 0 && slice.range.size() > 1) {
        planner.split(index, slice.range.begin + 1, MoveReason::Rule);
      }
    }
    place_missing(planner, [&](Planner::Index index) { return random_node(planner, index, random); });
    for (std::optional<Planner::Index> index = 0; index;) {
      const std::optional<Planner::Index> next = planner.next(*index);
      if (!next) return;
      const Slice& a = planner.slice(*index);
      const Slice& b = planner.slice(*next);
      if (a.bytes == 0 && b.bytes == 0 && a.holders == b.holders && !a.in_transfer && !b.in_transfer) {
        planner.merge_with_next(*index);
      } else {
        index = next;
      }
    }
  }
};

/// Places by bytes: the heaviest slice first, onto the emptiest node. Balances once a day and in a requested step; new
/// slices go to random nodes.
class BinPacking final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "bin-packing"; }
  std::string_view summary() const override { return "heaviest first onto the emptiest node, by bytes, once a day"; }

  Plan initialise(const BalanceModel& model, Random&) const override {
    Planner planner(by_bytes(model));
    pack(planner);
    return planner.take_plan();
  }

  Plan step(const BalanceModel& model, Memory&, Random& random) const override {
    Planner planner(by_bytes(model));
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return random_node(planner, index, random); });
    const bool is_daily = model.round > 0 && model.round % kRoundsPerDay == 0;
    if (is_daily || model.is_requested) level(planner);
    return planner.take_plan();
  }

 private:
  static constexpr std::uint64_t kRoundsPerDay = 8640;  // A round takes 10 s.

  /// Returns the model with bytes in place of loads.
  static BalanceModel by_bytes(const BalanceModel& model) {
    BalanceModel weighed = model;
    for (Slice& slice : weighed.slices) {
      slice.scale_loads(0.0);
      slice.writes = static_cast<double>(slice.bytes);
    }
    return weighed;
  }

  static void pack(Planner& planner) {
    std::vector<Planner::Index> order(planner.index_end());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Planner::Index a, Planner::Index b) {
      return planner.slice(a).bytes > planner.slice(b).bytes;
    });
    for (const Planner::Index index : order) {
      while (planner.slice(index).holders.size() < planner.model().redundancy) {
        const auto node = coolest_for(planner, index);
        if (!node) break;
        planner.place(index, *node, MoveReason::FirstPlace);
      }
    }
  }

  /// Moves the largest slices that fit from the fullest node to the emptiest one.
  static void level(Planner& planner) {
    while (true) {
      const std::uint16_t full = planner.hottest();
      const std::uint16_t empty = planner.coolest();
      const double wanted = (planner.load(full) - planner.load(empty)) / 2.0;
      std::optional<Planner::Index> best;
      for (const Planner::Index index : planner.slices_of(full)) {
        const auto bytes = static_cast<double>(planner.slice(index).bytes);
        if (bytes > wanted || !planner.may_move(index, full, empty)) continue;
        if (!best || planner.slice(index).bytes > planner.slice(*best).bytes) best = index;
      }
      if (!best || planner.slice(*best).bytes == 0) return;
      planner.move(*best, full, empty, MoveReason::Rule);
    }
  }
};

}  // namespace

const BalancingAlgorithm& random_placement() {
  static const RandomPlacement algorithm;
  return algorithm;
}

const BalancingAlgorithm& bin_packing() {
  static const BinPacking algorithm;
  return algorithm;
}

}  // namespace fjord::balancer
