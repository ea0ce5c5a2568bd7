// Consistent hashing that looks at loads [KBD 2020, 4.4.2]. Each slice is a token with its range. Three algorithms hand
// tokens from heavy nodes to light ones, and one splits hot ranges and merges cold ones.

#include <algorithm>

#include "algorithms/all.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

constexpr double kHeavy = 1.05;  // A node above kHeavy times the mean is heavy; one below the mean is light.

std::vector<std::uint16_t> nodes_where(const Planner& planner, bool heavy) {
  std::vector<std::uint16_t> nodes;
  for (const auto& [load, node] : planner.by_load()) {
    if (heavy ? load > kHeavy * planner.mean() : load < planner.mean()) nodes.push_back(node);
  }
  return nodes;
}

/// Returns the lightest slice without which `heavy` would be light; if there is none, the heaviest slice. Slices that
/// would make `light` heavy do not count.
std::optional<Planner::Index> token_for(const Planner& planner, std::uint16_t heavy, std::uint16_t light) {
  const double excess = planner.load(heavy) - planner.mean();
  const double room = kHeavy * planner.mean() - planner.load(light);
  std::optional<Planner::Index> best;
  double best_load = 0.0;
  for (const Planner::Index index : planner.slices_of(heavy)) {
    if (!planner.may_move(index, heavy, light)) continue;
    const double load = planner.slice(index).load_at(*planner.slice(index).holders.find(heavy));
    const double left = load / planner.model().nodes[heavy].capacity;
    if (load / planner.model().nodes[light].capacity > room || load <= 0.0) continue;
    const bool is_enough = left >= excess;
    const bool was_enough = best_load >= excess;
    if (best && (is_enough ? was_enough && left >= best_load : was_enough || left <= best_load)) continue;
    best = index;
    best_load = left;
  }
  return best;
}

bool hand_over(Planner& planner, std::uint16_t heavy, std::uint16_t light) {
  const auto token = token_for(planner, heavy, light);
  if (token) planner.move(*token, heavy, light, MoveReason::Hot);
  return token.has_value();
}

class TokenAlgorithm : public BalancingAlgorithm {
 public:
  TokenAlgorithm(std::string_view name, std::string_view summary) : name_(name), summary_(summary) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    return hashing_algorithms().front()->initialise(model, random);
  }
  Plan step(const BalanceModel& model, Memory&, Random& random) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    run(planner, random);
    return planner.take_plan();
  }

 private:
  virtual void run(Planner& planner, Random& random) const = 0;

  std::string_view name_;
  std::string_view summary_;
};

/// Each light node asks one random node and takes one token from it if that node is heavy.
class OneToOne final : public TokenAlgorithm {
 public:
  using TokenAlgorithm::TokenAlgorithm;

 private:
  void run(Planner& planner, Random& random) const override {
    for (const std::uint16_t light : nodes_where(planner, false)) {
      const auto other = static_cast<std::uint16_t>(random.below(planner.model().nodes.size()));
      if (planner.load(other) > kHeavy * planner.mean()) hand_over(planner, other, light);
    }
  }
};

/// Each heavy node asks a few random light ones and gives a token to the lightest of them.
class OneToMany final : public TokenAlgorithm {
 public:
  using TokenAlgorithm::TokenAlgorithm;

 private:
  static constexpr std::size_t kAsked = 4;

  void run(Planner& planner, Random& random) const override {
    const std::vector<std::uint16_t> light = nodes_where(planner, false);
    if (light.empty()) return;
    for (const std::uint16_t heavy : nodes_where(planner, true)) {
      std::uint16_t lightest = light[random.below(light.size())];
      for (std::size_t i = 1; i < kAsked; ++i) {
        const std::uint16_t other = light[random.below(light.size())];
        if (planner.load(other) < planner.load(lightest)) lightest = other;
      }
      hand_over(planner, heavy, lightest);
    }
  }
};

/// Knows all nodes: repeatedly gives a token of the heaviest node that can give one to the lightest node, until none
/// can.
class Central final : public TokenAlgorithm {
 public:
  using TokenAlgorithm::TokenAlgorithm;

 private:
  void run(Planner& planner, Random&) const override {
    bool any = true;
    while (any) {
      const std::vector<std::uint16_t> heavy = nodes_where(planner, true);
      any = std::any_of(heavy.rbegin(), heavy.rend(),
                        [&](std::uint16_t node) { return hand_over(planner, node, planner.coolest()); });
    }
  }
};

/// Splits hot ranges and gives one half to the node of a neighbouring range; merges cold neighbours.
class SplitMerge final : public TokenAlgorithm {
 public:
  using TokenAlgorithm::TokenAlgorithm;

 private:
  static constexpr double kHot = 4.0;    // A slice with more than kHot times the mean load is split or moved.
  static constexpr double kCold = 0.25;  // Two neighbours with less than kCold times the mean load are merged.

  void run(Planner& planner, Random&) const override {
    const double mean =
        planner.mean() * static_cast<double>(planner.by_load().size()) / static_cast<double>(planner.count());
    const Planner::Index end = planner.index_end();
    for (Planner::Index index = 0; index < end; ++index) {
      const Slice& slice = planner.slice(index);
      if (slice.holders.empty() || slice.in_transfer || slice.load() < kHot * mean) continue;
      if (planner.load(slice.holders[0].node) <= kHeavy * planner.mean()) continue;
      const auto at = cut_of(planner, index);
      hand_on(planner, at ? planner.split(index, *at, MoveReason::TooHotToMove) : index);
    }
    for (std::optional<Planner::Index> index = 0; index;) {
      const std::optional<Planner::Index> next = planner.next(*index);
      if (!next) return;
      const Slice& a = planner.slice(*index);
      const Slice& b = planner.slice(*next);
      if (a.holders == b.holders && !a.in_transfer && !b.in_transfer && a.load() + b.load() < kCold * mean) {
        planner.merge_with_next(*index);
      } else {
        index = next;
      }
    }
  }

  static void hand_on(Planner& planner, Planner::Index index) {
    const std::uint16_t from = planner.slice(index).holders[0].node;
    std::optional<std::uint16_t> to;
    for (const auto neighbour : {planner.previous(index), planner.next(index)}) {
      if (!neighbour || planner.slice(*neighbour).holders.empty()) continue;
      const std::uint16_t node = planner.slice(*neighbour).holders[0].node;
      if (planner.may_move(index, from, node) && (!to || planner.load(node) < planner.load(*to))) to = node;
    }
    if (to && planner.load(*to) < planner.load(from)) planner.move(index, from, *to, MoveReason::Hot);
  }
};

}  // namespace

std::vector<const BalancingAlgorithm*> token_algorithms() {
  static const OneToOne one_to_one("tokens-one-to-one", "each light node takes a token of one random heavy node");
  static const OneToMany one_to_many("tokens-one-to-many", "each heavy node gives a token to the lightest of a few");
  static const Central central("tokens-central", "tokens of the heaviest node go to the lightest one");
  static const SplitMerge split_merge("tokens-split-merge",
                                      "hot ranges are split towards a neighbour, cold ones merged");
  return {&one_to_one, &one_to_many, &central, &split_merge};
}

}  // namespace fjord::balancer
