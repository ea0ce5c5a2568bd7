// The algorithm of Google Slicer as [KBD 2020, 4.5.1 and 6.5] describes it, with its constants.

#include <algorithm>

#include "algorithms/all.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

constexpr double kMergedBytes = 0.01;     // Share of all bytes that the merges of one step may move.
constexpr double kMovedBytes = 0.09;      // Share of all bytes that the moves of one step may move.
constexpr std::size_t kMergeAbove = 50;   // A node with this many slices or fewer loses no slice to a merge.
constexpr std::size_t kSplitBelow = 150;  // A node with this many slices or more gets no slice split.

class WeightedMove final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "weighted-move"; }
  std::string_view summary() const override {
    return "merges cold neighbours, moves what lowers the imbalance most for its bytes, splits what is twice the mean";
  }

  /// Divides the key space into equal parts, one for each node. Further replicas go to the nodes that follow.
  Plan initialise(const BalanceModel& model, Random&) const override {
    Planner planner(model);
    place_missing(planner, [&](Planner::Index index) -> std::optional<std::uint16_t> {
      const std::size_t nodes = model.nodes.size();
      const std::size_t home = std::uint64_t{planner.slice(index).range.begin} * nodes / model.buckets();
      for (std::size_t i = 0; i < nodes; ++i) {
        const auto node = static_cast<std::uint16_t>((home + i) % nodes);
        if (planner.may_hold(index, node)) return node;
      }
      return std::nullopt;
    });
    return planner.take_plan();
  }

  Plan step(const BalanceModel& model, Memory&, Random&) const override {
    Planner planner(model);
    const auto all = static_cast<double>(model.bytes());
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    merge(planner, static_cast<std::uint64_t>(kMergedBytes * all));
    move(planner, static_cast<std::uint64_t>(kMovedBytes * all));
    split(planner);
    return planner.take_plan();
  }

 private:
  static double mean_slice(const Planner& planner) {
    double sum = 0.0;
    for (Planner::Index index = 0; index < planner.index_end(); ++index) {
      if (planner.is_alive(index)) sum += planner.slice(index).load();
    }
    return sum / static_cast<double>(planner.count());
  }

  static void merge(Planner& planner, std::uint64_t bytes) {
    const double mean = mean_slice(planner);
    std::optional<Planner::Index> index = 0;
    while (index) {
      const std::optional<Planner::Index> next = planner.next(*index);
      if (!next) return;
      const Slice& a = planner.slice(*index);
      const Slice& b = planner.slice(*next);
      if (a.in_transfer || b.in_transfer || a.load() + b.load() >= mean ||
          !bring_together(planner, *index, *next, bytes)) {
        index = next;
      } else {
        planner.merge_with_next(*index);
      }
    }
  }

  /// Moves the replicas of `from` onto the holders of `to`, so that both can be merged.
  static bool bring_together(Planner& planner, Planner::Index to, Planner::Index from, std::uint64_t& bytes) {
    if (planner.slice(to).holders == planner.slice(from).holders) return true;
    // With several replicas, only slices that have the same holders already are merged.
    if (planner.model().redundancy != 1) return false;
    const std::uint16_t source = planner.slice(from).holders[0].node;
    const std::uint16_t target = planner.slice(to).holders[0].node;
    const std::uint64_t moved = planner.slice(from).bytes;
    const double added = planner.slice(from).load() / planner.model().nodes[target].capacity;
    const bool fits = moved <= bytes && planner.slices_of(source).size() > kMergeAbove &&
                      planner.load(target) + added <= planner.by_load().rbegin()->first &&
                      planner.may_move(from, source, target);
    if (!fits) return false;
    planner.move(from, source, target, MoveReason::Cold);
    bytes -= moved;
    return true;
  }

  static void move(Planner& planner, std::uint64_t bytes) {
    while (true) {
      const std::uint16_t hot = planner.hottest();
      const std::uint16_t cool = planner.coolest();
      const auto index = best_move(planner, hot, cool, bytes);
      if (!index) return;
      bytes -= planner.slice(*index).bytes;
      planner.move(*index, hot, cool, MoveReason::Hot);
    }
  }

  /// Returns the slice of `hot` whose move to `cool` lowers the imbalance most in proportion to its bytes.
  static std::optional<Planner::Index> best_move(const Planner& planner, std::uint16_t hot, std::uint16_t cool,
                                                 std::uint64_t bytes) {
    const double highest = planner.load(hot);
    const double second = planner.by_load().size() < 2 ? 0.0 : std::next(planner.by_load().rbegin())->first;
    std::optional<Planner::Index> best;
    double best_weight = 0.0;
    for (const Planner::Index index : planner.slices_of(hot)) {
      const Slice& slice = planner.slice(index);
      if (slice.bytes > bytes) continue;
      const double load = slice.load_at(*slice.holders.find(hot));
      const double after = std::max({second, highest - load / planner.model().nodes[hot].capacity,
                                     planner.load(cool) + load / planner.model().nodes[cool].capacity});
      const double weight = (highest - after) / (static_cast<double>(slice.bytes) + 1.0);
      if (weight <= best_weight || !planner.may_move(index, hot, cool)) continue;
      best_weight = weight;
      best = index;
    }
    return best;
  }

  static void split(Planner& planner) {
    const double mean = mean_slice(planner);
    const Planner::Index end = planner.index_end();
    for (Planner::Index index = 0; index < end; ++index) {
      if (!planner.is_alive(index)) continue;
      const Slice& slice = planner.slice(index);
      if (slice.in_transfer || slice.load() < 2.0 * mean) continue;
      const bool fits = std::all_of(slice.holders.begin(), slice.holders.end(), [&](const Holder& holder) {
        return planner.slices_of(holder.node).size() < kSplitBelow;
      });
      if (!fits) continue;
      if (const auto at = cut_of(planner, index)) planner.split(index, *at, MoveReason::TooHotToMove);
    }
  }
};

}  // namespace

const BalancingAlgorithm& weighted_move() {
  static const WeightedMove algorithm;
  return algorithm;
}

}  // namespace fjord::balancer
