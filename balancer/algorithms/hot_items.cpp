// Algorithms that place the hottest slices one by one: `autoplacer` [KBD 2020, 4.6]; `two-tier`, which moves cold
// blocks too, as E-Store does.

#include <algorithm>
#include <numeric>

#include "algorithms/all.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

constexpr std::size_t kItems = 20;  // Number of slices that one step looks at.
constexpr double kGainMin = 0.002;  // The least gain of a move: how far it lowers the hotter node, over the mean load.
constexpr double kAllowed = 1.05;   // A node up to this many times the mean load counts as balanced.

/// Returns all slices, hottest first.
std::vector<Planner::Index> hottest_slices(const Planner& planner) {
  std::vector<Planner::Index> order(planner.index_end());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Planner::Index a, Planner::Index b) {
    return planner.slice(a).load() > planner.slice(b).load();
  });
  return order;
}

/// Returns the hottest of the nodes that hold the slice.
std::uint16_t hottest_holder(const Planner& planner, Planner::Index index) {
  const Holders& holders = planner.slice(index).holders;
  return std::max_element(holders.begin(), holders.end(),
                          [&](const Holder& a, const Holder& b) { return planner.load(a.node) < planner.load(b.node); })
      ->node;
}

/// Moves the slice from `from` to the coolest node that may hold it, if that node then is cooler than `from` was, by at
/// least `gain`.
bool move_to_coolest(Planner& planner, Planner::Index index, std::uint16_t from, double gain) {
  for (const auto& [load, node] : planner.by_load()) {
    if (!planner.may_move(index, from, node)) continue;
    const Slice& slice = planner.slice(index);
    const double added = slice.load_at(*slice.holders.find(from)) / planner.model().nodes[node].capacity;
    if (load + added + gain > planner.load(from)) return false;
    planner.move(index, from, node, MoveReason::Hot);
    return true;
  }
  return false;
}

class Autoplacer final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "autoplacer"; }
  std::string_view summary() const override { return "places the hottest slices one by one; each has one turn"; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    return hashing_algorithms().front()->initialise(model, random);
  }

  Plan step(const BalanceModel& model, Memory& memory, Random&) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    std::size_t looked_at = 0;
    bool any = false;
    for (const Planner::Index index : hottest_slices(planner)) {
      if (looked_at == kItems) break;
      const std::uint32_t begin = planner.slice(index).range.begin;
      if (std::binary_search(memory.done.begin(), memory.done.end(), begin)) continue;
      ++looked_at;
      if (planner.slice(index).holders.empty()) continue;
      const std::uint16_t from = hottest_holder(planner, index);
      if (!move_to_coolest(planner, index, from, kGainMin * planner.mean())) continue;
      any = true;
      memory.done.insert(std::lower_bound(memory.done.begin(), memory.done.end(), begin), begin);
    }
    // Every slice that could gain by a move has had its turn. From the next step on, all slices may move again.
    if (!any) memory.done.clear();
    return planner.take_plan();
  }
};

class TwoTier final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "two-tier"; }
  std::string_view summary() const override { return "hot slices one by one, then blocks of cold ones"; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    return hashing_algorithms().front()->initialise(model, random);
  }

  Plan step(const BalanceModel& model, Memory&, Random&) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    if (planner.imbalance() <= kAllowed) return planner.take_plan();
    std::vector<Planner::Index> order = hottest_slices(planner);
    const std::size_t hot = std::max(kItems, order.size() / 100);
    for (std::size_t i = 0; i < order.size() && i < hot; ++i) {
      if (planner.slice(order[i]).holders.empty()) continue;
      const std::uint16_t from = hottest_holder(planner, order[i]);
      if (planner.load(from) > kAllowed * planner.mean()) move_to_coolest(planner, order[i], from, 0.0);
    }
    if (hot < order.size()) order.erase(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(hot));
    move_blocks(planner, order);
    return planner.take_plan();
  }

 private:
  /// Moves runs of neighbouring cold slices off nodes that have more than kAllowed times the mean load.
  static void move_blocks(Planner& planner, std::vector<Planner::Index>& cold) {
    std::sort(cold.begin(), cold.end(), [&](Planner::Index a, Planner::Index b) {
      return planner.slice(a).range.begin < planner.slice(b).range.begin;
    });
    for (const Planner::Index index : cold) {
      if (planner.imbalance() <= kAllowed) return;
      if (planner.slice(index).holders.empty()) continue;
      const std::uint16_t from = hottest_holder(planner, index);
      if (planner.load(from) > kAllowed * planner.mean()) move_to_coolest(planner, index, from, 0.0);
    }
  }
};

/// Spreads the slices of the hottest topics over the nodes, so that the slowest node of a query has fewer matches [KBD
/// 2020, 9.3].
class TopicSpread final : public BalancingAlgorithm {
 public:
  std::string_view name() const override { return "topic-spread"; }
  std::string_view summary() const override { return "spreads the matches of frequent queries over all nodes"; }

  Plan initialise(const BalanceModel& model, Random& random) const override {
    return hashing_algorithms().front()->initialise(model, random);
  }

  Plan step(const BalanceModel& model, Memory&, Random&) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    place_missing(planner, [&](Planner::Index index) { return coolest_for(planner, index); });
    if (!model.topics.empty()) Spread(planner).run();
    return planner.take_plan();
  }

 private:
  class Spread {
   public:
    explicit Spread(Planner& planner) : planner_(planner), nodes_(planner.model().nodes.size()) {
      const std::vector<Topic>& topics = planner.model().topics;
      matches_.assign(topics.size(), std::vector<double>(nodes_, 0.0));
      of_slice_.resize(planner.index_end());
      for (std::size_t topic = 0; topic < topics.size(); ++topic) {
        for (const auto& [bucket, count] : topics[topic].matches) {
          const Planner::Index index = slice_of(bucket);
          if (planner.slice(index).holders.empty()) continue;
          of_slice_[index].emplace_back(topic, count);
          matches_[topic][planner.slice(index).holders[0].node] += count;
        }
      }
    }

    void run() {
      std::vector<std::size_t> order(matches_.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return cost(a) > cost(b); });
      for (const std::size_t topic : order) {
        while (relieve(topic)) continue;
      }
    }

   private:
    Planner::Index slice_of(std::uint32_t bucket) const {
      const std::vector<Slice>& slices = planner_.model().slices;
      const auto it = std::upper_bound(slices.begin(), slices.end(), bucket,
                                       [](std::uint32_t at, const Slice& slice) { return at < slice.range.end; });
      return static_cast<Planner::Index>(it - slices.begin());
    }

    double most(std::size_t topic) const { return *std::max_element(matches_[topic].begin(), matches_[topic].end()); }
    double cost(std::size_t topic) const { return planner_.model().topics[topic].frequency * most(topic); }

    /// Moves one slice off the node with the most matches of the topic. Does so only if the cost of all topics together
    /// falls.
    bool relieve(std::size_t topic) {
      const auto& row = matches_[topic];
      const auto from = static_cast<std::uint16_t>(std::max_element(row.begin(), row.end()) - row.begin());
      std::optional<std::pair<Planner::Index, std::uint16_t>> best;
      double best_gain = 1e-9;
      for (const Planner::Index index : planner_.slices_of(from)) {
        if (index >= of_slice_.size() || of_slice_[index].empty() || planner_.slice(index).holders[0].node != from)
          continue;
        for (std::uint16_t to = 0; to < nodes_; ++to) {
          if (!planner_.may_move(index, from, to)) continue;
          const double added = planner_.slice(index).load() / planner_.model().nodes[to].capacity;
          if (planner_.load(to) + added > std::max(planner_.load(from), kAllowed * planner_.mean())) continue;
          const double gain = gain_of(index, from, to);
          if (gain <= best_gain) continue;
          best_gain = gain;
          best = {index, to};
        }
      }
      if (!best) return false;
      for (const auto& [other, count] : of_slice_[best->first]) {
        matches_[other][from] -= count;
        matches_[other][best->second] += count;
      }
      planner_.move(best->first, from, best->second, MoveReason::Rule);
      return true;
    }

    double gain_of(Planner::Index index, std::uint16_t from, std::uint16_t to) {
      double gain = 0.0;
      for (const auto& [topic, count] : of_slice_[index]) {
        const double before = cost(topic);
        matches_[topic][from] -= count;
        matches_[topic][to] += count;
        gain += before - cost(topic);
        matches_[topic][from] += count;
        matches_[topic][to] -= count;
      }
      return gain;
    }

    Planner& planner_;
    std::size_t nodes_;
    std::vector<std::vector<double>> matches_;  // Number of matches, by topic and node.
    std::vector<std::vector<std::pair<std::size_t, double>>> of_slice_;
  };
};

}  // namespace

const BalancingAlgorithm& autoplacer() {
  static const Autoplacer algorithm;
  return algorithm;
}

const BalancingAlgorithm& two_tier() {
  static const TwoTier algorithm;
  return algorithm;
}

const BalancingAlgorithm& topic_spread() {
  static const TopicSpread algorithm;
  return algorithm;
}

}  // namespace fjord::balancer
