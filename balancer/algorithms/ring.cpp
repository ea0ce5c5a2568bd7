// Two algorithms in which the nodes form a ring and give load to their neighbours. `neighbour` moves a fixed share of
// the keys, as in [ADLB, 3]; `diffusion` moves an amount of load. Both need replicas that lie in the order of the ring;
// initialise() places them in this order.

#include <algorithm>

#include "algorithms/all.h"
#include "forecast.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

constexpr double kLoadMin = 500.0;       // A node with less load than this in a round gives nothing away [ADLB, 3.2.2].
constexpr std::uint32_t kParts = 9;      // Number of equal parts into which a node divides its keys.
constexpr double kOffloadedPart = 0.25;  // Share of its keys that a node gives away in one step.

/// Divides the bucket space into equal parts and gives each node `parts` of them, in the order of the nodes. Further
/// replicas of a part are on the next nodes of the ring.
Plan place_in_ring(const BalanceModel& model, std::uint32_t parts) {
  Planner planner(model);
  const std::vector<BalanceNode>& nodes = model.nodes;
  std::vector<std::uint16_t> ring;
  for (std::uint16_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node].usable) ring.push_back(node);
  }
  const std::uint64_t cuts = std::uint64_t{parts} * ring.size();
  std::optional<Planner::Index> last = 0;
  for (std::uint64_t cut = 1; cut < cuts; ++cut) {
    const auto at = static_cast<std::uint32_t>(cut * model.buckets() / cuts);
    while (last && planner.slice(*last).range.end <= at) last = planner.next(*last);
    if (last && planner.slice(*last).range.begin < at) last = planner.split(*last, at, MoveReason::Rule);
  }
  place_missing(planner, [&](Planner::Index index) -> std::optional<std::uint16_t> {
    const std::size_t home = std::uint64_t{planner.slice(index).range.begin} * ring.size() / model.buckets();
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::uint16_t node = ring[(home + i) % ring.size()];
      if (planner.may_hold(index, node)) return node;
    }
    return std::nullopt;
  });
  return planner.take_plan();
}

/// The slices whose primary is the node, in ascending order, and the primaries of the slices before and after them.
struct Arc {
  std::vector<Planner::Index> slices;
  std::optional<std::uint16_t> left;
  std::optional<std::uint16_t> right;
};

Arc arc_of(const Planner& planner, std::uint16_t node) {
  Arc arc;
  for (const Planner::Index index : planner.slices_of(node)) {
    if (planner.slice(index).holders[0].node == node) arc.slices.push_back(index);
  }
  if (arc.slices.empty()) return arc;
  std::sort(arc.slices.begin(), arc.slices.end(), [&](Planner::Index a, Planner::Index b) {
    return planner.slice(a).range.begin < planner.slice(b).range.begin;
  });
  const auto primary = [&](std::optional<Planner::Index> index) -> std::optional<std::uint16_t> {
    if (!index || planner.slice(*index).holders.empty()) return std::nullopt;
    return planner.slice(*index).holders[0].node;
  };
  arc.left = primary(planner.previous(arc.slices.front()));
  arc.right = primary(planner.next(arc.slices.back()));
  return arc;
}

/// A hot node gives a fixed share of its keys to its cooler neighbour. Then every node divides its keys into equal
/// parts again.
class Neighbour final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "neighbour"; }
  std::string_view summary() const override {
    return "a hot node gives a quarter of its keys to its cooler ring neighbour";
  }

  Plan initialise(const BalanceModel& model, Random&) const override { return place_in_ring(model, kParts); }

  Plan step(const BalanceModel& model, Memory&, Random&) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    for (std::uint16_t node = 0; node < model.nodes.size(); ++node) {
      if (!model.nodes[node].usable || planner.load(node) < kLoadMin) continue;
      const Arc arc = arc_of(planner, node);
      const std::optional<std::uint16_t> target = cooler(planner, arc);
      if (!target || planner.load(*target) >= planner.load(node)) continue;
      offload(planner, node, *target, arc);
    }
    for (std::uint16_t node = 0; node < model.nodes.size(); ++node) divide_anew(planner, node);
    return planner.take_plan();
  }

 private:
  static std::optional<std::uint16_t> cooler(const Planner& planner, const Arc& arc) {
    if (!arc.left || !arc.right) return arc.left ? arc.left : arc.right;
    return planner.load(*arc.left) <= planner.load(*arc.right) ? arc.left : arc.right;
  }

  static void offload(Planner& planner, std::uint16_t node, std::uint16_t target, const Arc& arc) {
    std::uint64_t bytes = 0;
    for (const Planner::Index index : arc.slices) bytes += planner.slice(index).bytes;
    const auto wanted = static_cast<std::uint64_t>(kOffloadedPart * static_cast<double>(bytes));
    std::uint64_t moved = 0;
    for (std::size_t i = 0; i < arc.slices.size() && moved < wanted; ++i) {
      const Planner::Index index = target == arc.right ? arc.slices[arc.slices.size() - 1 - i] : arc.slices[i];
      if (!planner.may_move(index, node, target)) return;
      moved += planner.slice(index).bytes;
      planner.move(index, node, target, MoveReason::Hot);
    }
  }

  /// Splits and merges adjacent slices of the node until it has about kParts slices of equal size.
  static void divide_anew(Planner& planner, std::uint16_t node) {
    const Arc arc = arc_of(planner, node);
    if (arc.slices.empty() || arc.slices.size() == kParts) return;
    std::uint32_t buckets = 0;
    for (const Planner::Index index : arc.slices) buckets += planner.slice(index).range.size();
    const std::uint32_t wanted = std::max(1u, buckets / kParts);
    std::optional<Planner::Index> index = arc.slices.front();
    while (index && planner.slice(*index).holders[0].node == node) {
      const Slice& slice = planner.slice(*index);
      const std::optional<Planner::Index> next = planner.next(*index);
      if (slice.range.size() > wanted && !slice.in_transfer) {
        index = planner.split(*index, slice.range.begin + wanted, MoveReason::Rule);
      } else if (slice.range.size() < wanted && next && planner.slice(*next).holders == slice.holders &&
                 !slice.in_transfer && !planner.slice(*next).in_transfer) {
        planner.merge_with_next(*index);
      } else {
        index = next;
      }
    }
  }
};

/// Each node gives half of the difference in load to each cooler neighbour. A slice that has moved stays where it is
/// until its cool-down has ended.
class Diffusion final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "diffusion"; }
  std::string_view summary() const override {
    return "each node gives half of the difference in load to cooler neighbours";
  }

  Plan initialise(const BalanceModel& model, Random&) const override { return place_in_ring(model, 100); }

  Plan step(const BalanceModel& model, Memory& memory, Random&) const override {
    const BalanceModel expected = forecast(model, memory);
    Planner planner(expected);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    std::vector<double> before;
    for (std::uint16_t node = 0; node < model.nodes.size(); ++node) before.push_back(planner.load(node));
    for (std::uint16_t node = 0; node < model.nodes.size(); ++node) {
      if (!model.nodes[node].usable) continue;
      const Arc arc = arc_of(planner, node);
      if (arc.left) give(planner, memory, arc, node, *arc.left, (before[node] - before[*arc.left]) / 2.0);
      if (arc.right && arc.right != arc.left)
        give(planner, memory, arc, node, *arc.right, (before[node] - before[*arc.right]) / 2.0);
    }
    Plan plan = planner.take_plan();
    remember_moves(plan, model.round, memory);
    return plan;
  }

 private:
  static void give(Planner& planner, const Memory& memory, const Arc& arc, std::uint16_t node, std::uint16_t target,
                   double load) {
    for (std::size_t i = 0; i < arc.slices.size(); ++i) {
      const Planner::Index index = target == arc.right ? arc.slices[arc.slices.size() - 1 - i] : arc.slices[i];
      const Holder* const holder = planner.slice(index).holders.find(node);
      if (holder == nullptr) continue;  // The slice has already gone to the other neighbour.
      const double moved = planner.slice(index).load_at(*holder) / planner.model().nodes[node].capacity;
      if (moved > load || is_cooling_down(memory.slices[index], planner.model().round)) return;
      if (!planner.may_move(index, node, target)) return;
      planner.move(index, node, target, MoveReason::Hot);
      load -= moved;
    }
  }
};

}  // namespace

const BalancingAlgorithm& neighbour() {
  static const Neighbour algorithm;
  return algorithm;
}

const BalancingAlgorithm& diffusion() {
  static const Diffusion algorithm;
  return algorithm;
}

}  // namespace fjord::balancer
