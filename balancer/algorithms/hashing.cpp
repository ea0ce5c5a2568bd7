// Consistent hashing with the three token strategies of [KBD 2020, 4.4.1], hashing with bounded loads, and weighted
// rendezvous hashing. The hash says on which nodes a slice should lie. A step moves the slices that lie elsewhere, for
// example after a node was added.

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "algorithms/all.h"
#include "planner.h"

namespace fjord::balancer {
namespace {

constexpr unsigned kTokens = 100;  // Number of tokens on the ring of a node with capacity 1.

/// Mixes the bits of a number: the finalizer of splitmix64.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Tokens as pairs (position, node), ascending by position.
using Ring = std::vector<std::pair<std::uint64_t, std::uint16_t>>;

Ring ring_of(const BalanceModel& model) {
  Ring ring;
  for (std::uint16_t node = 0; node < model.nodes.size(); ++node) {
    if (!model.nodes[node].usable) continue;
    const auto tokens = static_cast<unsigned>(std::lround(kTokens * model.nodes[node].capacity));
    for (unsigned token = 0; token < std::max(1u, tokens); ++token)
      ring.emplace_back(mix((std::uint64_t{node} << 32) | token), node);
  }
  std::sort(ring.begin(), ring.end());
  return ring;
}

/// Places each slice by a rule that depends on its range and the nodes only.
class HashPlacement : public BalancingAlgorithm {
 public:
  HashPlacement(std::string_view name, std::string_view summary) : name_(name), summary_(summary) {}

  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }

  Plan initialise(const BalanceModel& model, Random&) const override {
    Planner planner(model);
    settle(planner);
    return planner.take_plan();
  }

  Plan step(const BalanceModel& model, Memory&, Random&) const override {
    Planner planner(model);
    leave_gone_nodes(planner);
    settle(planner);
    return planner.take_plan();
  }

 protected:
  /// Function that a rule calls with one node after another, in the order of preference, until it returns true.
  using Offer = std::function<bool(std::uint16_t)>;
  class Rule {
   public:
    virtual ~Rule() = default;
    virtual void rank(const Planner& planner, Planner::Index index, const Offer& offer) const = 0;
  };
  virtual std::unique_ptr<Rule> rule(const BalanceModel& model) const = 0;

 private:
  void settle(Planner& planner) const {
    const std::unique_ptr<Rule> rule = this->rule(planner.model());
    for (Planner::Index index = 0; index < planner.index_end(); ++index) settle(planner, *rule, index);
  }

  static void settle(Planner& planner, const Rule& rule, Planner::Index index) {
    const unsigned wanted = planner.model().redundancy;
    std::vector<std::uint16_t> ideal;
    rule.rank(planner, index, [&](std::uint16_t node) {
      const BalanceNode& candidate = planner.model().nodes[node];
      const bool fits =
          candidate.usable && candidate.accepts && std::none_of(ideal.begin(), ideal.end(), [&](auto other) {
            return other == node || planner.model().nodes[other].group == candidate.group;
          });
      if (fits) ideal.push_back(node);
      return ideal.size() == wanted;
    });
    for (const std::uint16_t node : ideal) {
      const Holders& holders = planner.slice(index).holders;
      if (holders.find(node) != nullptr) continue;
      if (holders.size() < wanted) {
        if (planner.may_hold(index, node)) planner.place(index, node, MoveReason::FirstPlace);
        continue;
      }
      const auto misplaced = std::find_if(holders.begin(), holders.end(), [&](const Holder& holder) {
        return std::find(ideal.begin(), ideal.end(), holder.node) == ideal.end() &&
               planner.may_move(index, holder.node, node);
      });
      if (misplaced != holders.end()) planner.move(index, misplaced->node, node, MoveReason::Rule);
    }
  }

  std::string_view name_;
  std::string_view summary_;
};

/// Offers the nodes of the tokens at and behind a position, in the order of the ring, until `offer` returns true.
void walk(const Ring& ring, std::uint64_t position, const std::function<bool(std::uint16_t)>& offer) {
  const auto first = std::lower_bound(ring.begin(), ring.end(), std::pair<std::uint64_t, std::uint16_t>{position, 0});
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const auto at = (static_cast<std::size_t>(first - ring.begin()) + i) % ring.size();
    if (offer(ring[at].second)) return;
  }
}

enum class Strategy { RandomTokens, EqualRanges, EqualTokens };

class Consistent final : public HashPlacement {
 public:
  Consistent(std::string_view name, std::string_view summary, Strategy strategy)
      : HashPlacement(name, summary), strategy_(strategy) {}

 private:
  class TokenRule final : public Rule {
   public:
    TokenRule(Ring ring, Strategy strategy, std::uint32_t buckets)
        : ring_(std::move(ring)), strategy_(strategy), buckets_(buckets) {}

    void rank(const Planner& planner, Planner::Index index, const Offer& offer) const override {
      const BucketRange& range = planner.slice(index).range;
      // Strategy 1 spreads ranges over the ring by a hash. In strategy 2 ranges lie on the ring in their own order.
      const std::uint64_t position =
          strategy_ == Strategy::RandomTokens ? mix(~std::uint64_t{range.begin}) : UINT64_MAX / buckets_ * range.end;
      walk(ring_, position, offer);
    }

   private:
    Ring ring_;
    Strategy strategy_;
    std::uint32_t buckets_;
  };

  /// Strategy 3 has as many tokens as ranges and gives each node a number of them in proportion to its capacity. A
  /// range keeps its node while that node stays; the other nodes follow in an order that depends on the range.
  class DealtRule final : public Rule {
   public:
    explicit DealtRule(const BalanceModel& model) : nodes_(model.nodes.size()) {
      double capacity = 0.0;
      for (const BalanceNode& node : model.nodes) capacity += node.usable ? node.capacity : 0.0;
      room_.assign(nodes_, 0.0);
      for (std::size_t node = 0; node < nodes_; ++node) {
        if (model.nodes[node].usable)
          room_[node] = std::ceil(static_cast<double>(model.slices.size() * model.redundancy) *
                                  model.nodes[node].capacity / capacity);
      }
    }

    void rank(const Planner& planner, Planner::Index index, const Offer& offer) const override {
      const Slice& slice = planner.slice(index);
      std::vector<std::uint16_t> order;
      for (const Holder& holder : slice.holders) {
        if (static_cast<double>(planner.slices_of(holder.node).size()) <= room_[holder.node])
          order.push_back(holder.node);
      }
      // The first pass takes nodes with room only, the second one all nodes, so that there always are enough.
      const std::size_t start = mix(slice.range.begin) % nodes_;
      for (const bool only_with_room : {true, false}) {
        for (std::size_t i = 0; i < nodes_; ++i) {
          const auto node = static_cast<std::uint16_t>((start + i) % nodes_);
          const bool has_room = static_cast<double>(planner.slices_of(node).size()) < room_[node];
          if (has_room == only_with_room) order.push_back(node);
        }
      }
      for (const std::uint16_t node : order) {
        if (offer(node)) return;
      }
    }

   private:
    std::size_t nodes_;
    std::vector<double> room_;
  };

  std::unique_ptr<Rule> rule(const BalanceModel& model) const override {
    if (strategy_ == Strategy::EqualTokens) return std::make_unique<DealtRule>(model);
    return std::make_unique<TokenRule>(ring_of(model), strategy_, std::max(1u, model.buckets()));
  }

  Strategy strategy_;
};

/// Consistent hashing in which no node takes more than kBound times the mean load.
class BoundedLoad final : public HashPlacement {
 public:
  using HashPlacement::HashPlacement;

 private:
  static constexpr double kBound = 1.25;

  class BoundedRule final : public Rule {
   public:
    explicit BoundedRule(const BalanceModel& model) : ring_(ring_of(model)) {
      double load = 0.0;
      double capacity = 0.0;
      for (const Slice& slice : model.slices)
        load += slice.load() + slice.writes * static_cast<double>(model.redundancy - 1);
      for (const BalanceNode& node : model.nodes) capacity += node.usable ? node.capacity : 0.0;
      bound_ = kBound * load / capacity;
    }

    void rank(const Planner& planner, Planner::Index index, const Offer& offer) const override {
      const Slice& slice = planner.slice(index);
      const std::uint64_t position = mix(~std::uint64_t{slice.range.begin});
      bool is_enough = false;
      walk(ring_, position, [&](std::uint16_t node) {
        const double capacity = planner.model().nodes[node].capacity;
        const Holder* const holder = slice.holders.find(node);
        const double part = slice.writes + (slice.load() - slice.writes) / planner.model().redundancy;
        const double load = planner.load(node) + (holder == nullptr ? part / capacity : 0.0);
        is_enough = load <= bound_ && offer(node);
        return is_enough;
      });
      if (!is_enough) walk(ring_, position, offer);
    }

   private:
    Ring ring_;
    double bound_ = 0.0;
  };

  std::unique_ptr<Rule> rule(const BalanceModel& model) const override { return std::make_unique<BoundedRule>(model); }
};

/// Weighted rendezvous hashing: takes the nodes with the highest scores -capacity / ln(u), u being a hash of slice and
/// node.
class Rendezvous final : public HashPlacement {
 public:
  using HashPlacement::HashPlacement;

 private:
  class ScoreRule final : public Rule {
   public:
    void rank(const Planner& planner, Planner::Index index, const Offer& offer) const override {
      const std::uint64_t key = mix(planner.slice(index).range.begin);
      std::vector<std::pair<double, std::uint16_t>> scores;
      for (std::uint16_t node = 0; node < planner.model().nodes.size(); ++node) {
        const double u = (static_cast<double>(mix(key ^ mix(node)) >> 11) + 0.5) / 9007199254740992.0;
        scores.emplace_back(planner.model().nodes[node].capacity / std::log(u), node);
      }
      std::sort(scores.begin(), scores.end());
      for (const auto& [score, node] : scores) {
        if (offer(node)) return;
      }
    }
  };

  std::unique_ptr<Rule> rule(const BalanceModel&) const override { return std::make_unique<ScoreRule>(); }
};

}  // namespace

std::vector<const BalancingAlgorithm*> hashing_algorithms() {
  static const Consistent random_tokens("consistent-1", "consistent hashing, random tokens, hashed items",
                                        Strategy::RandomTokens);
  static const Consistent equal_ranges("consistent-2", "consistent hashing, random tokens, equal ranges in order",
                                       Strategy::EqualRanges);
  static const Consistent equal_tokens("consistent-3", "consistent hashing, as many tokens as ranges, dealt out",
                                       Strategy::EqualTokens);
  static const BoundedLoad bounded("bounded-load", "consistent hashing, no node above 1.25 times the mean load");
  static const Rendezvous rendezvous("rendezvous", "weighted rendezvous hashing; ignores load");
  return {&random_tokens, &equal_ranges, &equal_tokens, &bounded, &rendezvous};
}

}  // namespace fjord::balancer
