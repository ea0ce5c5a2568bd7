// Algorithms that try many changes and keep those that help: `stochastic`, which works like HBase's balancer, and
// `local-search`, which works like the allocator of Shard Manager and has limits instead of weights.

#include <algorithm>
#include <cmath>

#include "algorithms/all.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

/// A replica that may move to another node.
struct Candidate {
  Planner::Index index = 0;
  std::uint16_t from = 0;
  double load = 0.0;  ///< Load that the replica adds to its node, not divided by capacity.
};

std::optional<Candidate> random_replica(const Planner& planner, std::uint16_t node, Random& random) {
  const std::vector<Planner::Index>& held = planner.slices_of(node);
  if (held.empty()) return std::nullopt;
  const Planner::Index index = held[random.below(held.size())];
  return Candidate{index, node, planner.slice(index).load_at(*planner.slice(index).holders.find(node))};
}

std::uint16_t random_usable(const Planner& planner, Random& random) {
  while (true) {
    const auto node = static_cast<std::uint16_t>(random.below(planner.model().nodes.size()));
    if (planner.model().nodes[node].usable) return node;
  }
}

class Stochastic final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "stochastic"; }
  std::string_view summary() const override { return "random moves that lower a weighted cost of load and bytes"; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    return hashing_algorithms().front()->initialise(model, random);
  }

  Plan step(const BalanceModel& model, Memory&, Random& random) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    const auto bytes = static_cast<double>(std::max<std::uint64_t>(model.bytes(), 1));
    const std::size_t tries = kTriesPerNode * model.nodes.size();
    for (std::size_t i = 0; i < tries && planner.mean() > 0.0; ++i) {
      const auto moved = random_replica(planner, random_usable(planner, random), random);
      const std::uint16_t to = random_usable(planner, random);
      if (!moved || !planner.may_move(moved->index, moved->from, to)) continue;
      const double price = kBytesWeight * static_cast<double>(planner.slice(moved->index).bytes) / bytes;
      if (gain(planner, *moved, to) > price) planner.move(moved->index, moved->from, to, MoveReason::Hot);
    }
    return planner.take_plan();
  }

 private:
  static constexpr std::size_t kTriesPerNode = 200;
  static constexpr double kBytesWeight = 2.0;

  /// Returns by how much the move lowers the sum of the nodes' squared deviations from the mean, in units of the
  /// squared mean.
  static double gain(const Planner& planner, const Candidate& moved, std::uint16_t to) {
    const auto square = [&](double load) { return (load / planner.mean() - 1.0) * (load / planner.mean() - 1.0); };
    const double from_after = planner.load(moved.from) - moved.load / planner.model().nodes[moved.from].capacity;
    const double to_after = planner.load(to) + moved.load / planner.model().nodes[to].capacity;
    return square(planner.load(moved.from)) + square(planner.load(to)) - square(from_after) - square(to_after);
  }
};

/// Moves and exchanges sampled replicas until no node has more load than kLoadMax times the mean.
class LocalSearch final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "local-search"; }
  std::string_view summary() const override { return "sampled moves and exchanges until each node keeps its limits"; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    return hashing_algorithms().front()->initialise(model, random);
  }

  Plan step(const BalanceModel& model, Memory&, Random& random) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    std::size_t failures = 0;
    while (planner.imbalance() > kLoadMax && failures < kFailuresMax) {
      failures = improve(planner, random) ? 0 : failures + 1;
    }
    return planner.take_plan();
  }

 private:
  static constexpr double kLoadMax = 1.05;
  static constexpr std::size_t kSamples = 64;
  static constexpr std::size_t kFailuresMax = 8;

  /// Returns how far a load is above the limit, in units of the mean; 0 if it is below.
  static double excess(const Planner& planner, double load) { return std::max(0.0, load / planner.mean() - kLoadMax); }

  static bool improve(Planner& planner, Random& random) {
    const std::uint16_t hot = planner.hottest();
    std::optional<Candidate> best;
    std::uint16_t target = hot;
    double best_gain = 1e-6;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const auto moved = random_replica(planner, hot, random);
      const std::uint16_t to = random_usable(planner, random);
      if (!moved || !planner.may_move(moved->index, hot, to)) continue;
      const double before = excess(planner, planner.load(hot)) + excess(planner, planner.load(to));
      const double after = excess(planner, planner.load(hot) - moved->load / planner.model().nodes[hot].capacity) +
                           excess(planner, planner.load(to) + moved->load / planner.model().nodes[to].capacity);
      if (before - after <= best_gain) continue;
      best_gain = before - after;
      best = moved;
      target = to;
    }
    if (!best) return exchange(planner, hot, random);
    planner.move(best->index, hot, target, MoveReason::Hot);
    return true;
  }

  /// Exchanges a sampled slice of the hottest node for a cooler slice of a node below the limit.
  static bool exchange(Planner& planner, std::uint16_t hot, Random& random) {
    for (std::size_t i = 0; i < kSamples; ++i) {
      const std::uint16_t cool = random_usable(planner, random);
      const auto out = random_replica(planner, hot, random);
      const auto in = random_replica(planner, cool, random);
      if (!out || !in || out->load <= in->load || !planner.may_move(out->index, hot, cool)) continue;
      const double added = (out->load - in->load) / planner.model().nodes[cool].capacity;
      if (planner.load(cool) + added > kLoadMax * planner.mean() || !planner.may_move(in->index, cool, hot)) continue;
      if (planner.slice(out->index).bytes + planner.slice(in->index).bytes > planner.budget()) continue;
      planner.move(out->index, hot, cool, MoveReason::Hot);
      planner.move(in->index, cool, hot, MoveReason::Swap);
      return true;
    }
    return false;
  }
};

}  // namespace

const BalancingAlgorithm& stochastic() {
  static const Stochastic algorithm;
  return algorithm;
}

const BalancingAlgorithm& local_search() {
  static const LocalSearch algorithm;
  return algorithm;
}

}  // namespace fjord::balancer
