// The hierarchical algorithms straw2, uniform, list and tree, with rules.

#include <bit>
#include <optional>
#include <utility>

#include "placement/exceptions.h"
#include "placement/maps.h"
#include "placement/weights.h"

namespace fjord {
namespace {

using straw2::Uint128;

/// A short ordered list of nodes or groups. Not initialised, because arrays of it are on the stack of frequent calls.
struct Picks {
  std::array<std::uint32_t, kMaxRedundancy> items;
  std::uint32_t size;

  void push_back(std::uint32_t item) { items[size++] = item; }
  bool contains(std::uint32_t item) const {
    return std::find(items.begin(), items.begin() + size, item) != items.begin() + size;
  }
};

/// Primes above the largest number of children, so that each is a stride through all children of any group.
constexpr std::array<std::uint64_t, 16> kStridePrimes = {65537, 65539, 65543, 65551, 65557, 65563, 65579, 65581,
                                                         65587, 65599, 65609, 65617, 65629, 65633, 65647, 65651};

/// The largest number of draws by list and tree; straw2 then ranks the children that are left.
constexpr std::uint64_t draws_max(std::size_t count) { return 32 + 8 * std::uint64_t{count}; }

class TreeMap final : public MapWithExceptions {
 public:
  TreeMap(StatePointer state_pointer, DistributionPointer distribution_pointer, const PlacementSettings& settings)
      : MapWithExceptions(std::move(state_pointer), std::move(distribution_pointer)) {
    groups_.resize(distribution().flat_groups().size());
    add_group(0, 0, settings, false);
    add_rule(settings);
  }

 protected:
  NodeList place(std::uint64_t key) const override {
    const std::uint64_t seed = straw2::seed_of_key(key);
    const std::size_t wanted = std::min<std::size_t>(distribution().redundancy(), groups_[0].available);
    NodeList list;
    if (!rule_.empty()) follow_rule(seed, wanted, list);
    if (list.size() == wanted) return list;
    Picks picks;
    select(seed, 0, wanted, PlacementStep::kNodeLevel, picks);
    for (std::uint32_t i = 0; i < picks.size && list.size() < wanted; ++i) {
      const std::uint16_t node = static_cast<std::uint16_t>(picks.items[i]);
      if (rule_.empty() || !list.contains(node)) list.push_back(node);
    }
    return list;
  }

 private:
  /// A child of a group: a node or a group.
  struct Child {
    std::uint64_t id;
    std::uint64_t weight;
    std::uint64_t weight_through;  ///< Sum of the weights of this child and of the children before it.
    std::uint32_t result;          ///< Index of the node, or number of the group.
    std::uint32_t available;       ///< Number of available nodes in this child.
  };
  struct Group {
    std::uint64_t id = 0;
    std::uint32_t first_child = 0;
    std::uint32_t child_end = 0;
    std::uint32_t open_children = 0;  ///< Number of children with available nodes.
    std::uint32_t available = 0;
    std::uint32_t level = 0;
    /// For tree: index in `tree_weights_` of the first of its 2 * tree_leaves weights.
    std::uint32_t tree_weights = 0;
    std::uint32_t tree_leaves = 0;
    PlacementKind kind = PlacementKind::Straw2;
    bool is_leaf = true;
    bool has_equal_weights = true;

    std::uint32_t children() const { return child_end - first_child; }
  };
  struct Step {
    PlacementStep::Action action;
    std::uint32_t group;
    std::size_t count;
    unsigned level;
  };

  /// Adds a group. `is_closed`: a group above it has capacity 0, so it takes no replicas.
  void add_group(std::uint32_t number, std::uint32_t level, const PlacementSettings& settings, bool is_closed) {
    const auto flat_groups = distribution().flat_groups();
    const DistributionConfig::FlatGroup& flat = flat_groups[number];
    Group group;
    group.id = flat.id;
    group.level = level;
    group.is_leaf = flat.is_leaf;
    group.kind = settings.levels[std::min<std::size_t>(level, settings.levels.size() - 1)];
    group.first_child = static_cast<std::uint32_t>(children_.size());
    group.available = weight_of_group(number, state(), flat_groups, distribution().flat_nodes()).available;
    if (flat.is_leaf) {
      for (std::uint32_t at = flat.first_node; at < flat.node_end; ++at) add_node(at);
    } else {
      for (std::uint32_t child = number + 1; child < flat.group_end; child = flat_groups[child].group_end) {
        const GroupWeight below = weight_of_group(child, state(), flat_groups, distribution().flat_nodes());
        children_.push_back({flat_groups[child].id, below.weight, 0, child, below.available});
      }
    }
    group.child_end = static_cast<std::uint32_t>(children_.size());
    is_closed = is_closed || flat.capacity == 0.0;
    if (is_closed) {
      group.available = 0;
      for (std::uint32_t at = group.first_child; at < group.child_end; ++at) children_[at].available = 0;
    }
    std::uint64_t sum = 0;
    for (std::uint32_t at = group.first_child; at < group.child_end; ++at) {
      sum = std::min(sum + children_[at].weight, std::uint64_t{1} << 62);
      children_[at].weight_through = sum;
      if (children_[at].available > 0) ++group.open_children;
      if (children_[at].weight != children_[group.first_child].weight) group.has_equal_weights = false;
    }
    if (group.kind == PlacementKind::Tree) add_binary_tree(group);
    groups_[number] = group;
    for (std::uint32_t at = group.first_child; !flat.is_leaf && at < group.child_end; ++at) {
      add_group(children_[at].result, level + 1, settings, is_closed);
    }
  }

  void add_node(std::uint32_t position) {
    const DistributionGroup::Node& node = distribution().flat_nodes()[position];
    const NodeStateInfo& info = state().node(NodeId::storage(node.index));
    const std::uint64_t weight = weight_of_node(node, info);
    const bool is_available = weight > 0 && is_available_for_placement(info);
    children_.push_back({node.index, weight, 0, node.index, is_available ? 1u : 0u});
  }

  /// Computes the weights of a binary tree. Child i is the tree node 2i + 1. The number of a tree node is odd times two
  /// to the power of its height, so existing nodes keep their numbers when the tree gets another level.
  void add_binary_tree(Group& group) {
    group.tree_leaves = std::bit_ceil(std::max<std::uint32_t>(1, group.children()));
    group.tree_weights = static_cast<std::uint32_t>(tree_weights_.size());
    tree_weights_.resize(tree_weights_.size() + std::size_t{2} * group.tree_leaves);
    std::uint64_t* const weights = &tree_weights_[group.tree_weights];
    for (std::uint32_t i = 0; i < group.children(); ++i) weights[2 * i + 1] = children_[group.first_child + i].weight;
    for (std::uint32_t half = 1; half < group.tree_leaves; half *= 2) {
      for (std::uint32_t node = 2 * half; node < 2 * group.tree_leaves; node += 4 * half) {
        weights[node] = std::min(weights[node - half] + weights[node + half], std::uint64_t{1} << 62);
      }
    }
  }

  void add_rule(const PlacementSettings& settings) {
    const auto flat = distribution().flat_groups();
    for (const PlacementStep& step : settings.rule) {
      std::uint32_t group = 0;
      const std::uint64_t id = DistributionConfig::group_id(step.group);
      if (step.action == PlacementStep::Action::Take) {
        while (flat[group].id != id) ++group;  // Such a group exists: check_placement() has checked it.
      }
      rule_.push_back({step.action, group, step.count == 0 ? distribution().redundancy() : step.count, step.level});
    }
  }

  /// Returns the number of items of the level below a child: available nodes, or groups with available nodes.
  std::uint32_t room(const Child& child, bool is_node, unsigned level) const {
    if (is_node || level == PlacementStep::kNodeLevel) return child.available;
    if (child.available == 0) return 0;
    const Group& group = groups_[child.result];
    if (group.is_leaf || group.level >= level) return 1;
    std::uint32_t sum = 0;
    for (std::uint32_t at = group.first_child; at < group.child_end; ++at) sum += room(children_[at], false, level);
    return sum;
  }

  /// Picks up to `count` distinct items below the group: nodes, or groups of the level.
  void select(std::uint64_t seed, std::uint32_t number, std::size_t count, unsigned level, Picks& picks) const {
    const Group& group = groups_[number];
    picks.size = 0;
    if (count == 0 || group.available == 0) return;
    if (group.is_leaf && level != PlacementStep::kNodeLevel) return picks.push_back(number);
    Picks ranked;
    rank(seed, group, count, ranked);
    const auto is_result = [&](const Child& child) {
      return group.is_leaf ||
             (level != PlacementStep::kNodeLevel && (groups_[child.result].is_leaf || group.level + 1 == level));
    };
    bool all_are_results = true;
    for (std::uint32_t i = 0; i < ranked.size; ++i) all_are_results &= is_result(children_[ranked.items[i]]);
    if (all_are_results) {
      for (std::uint32_t i = 0; i < ranked.size; ++i) picks.push_back(children_[ranked.items[i]].result);
      return;
    }
    const ReplicaShares shares(ranked.size, count,
                               [&](std::size_t at) { return room(children_[ranked.items[at]], group.is_leaf, level); });
    std::array<Picks, kMaxRedundancy> parts;
    for (std::uint32_t i = 0; i < ranked.size; ++i) {
      const Child& child = children_[ranked.items[i]];
      parts[i].size = 0;
      if (shares[i] == 0) continue;
      if (is_result(child)) {
        parts[i].push_back(child.result);
      } else {
        select(seed, child.result, shares[i], level, parts[i]);
      }
    }
    for (std::uint32_t turn = 0; picks.size < shares.sum(); ++turn) {
      for (std::uint32_t i = 0; i < ranked.size; ++i) {
        if (turn < parts[i].size) picks.push_back(parts[i].items[turn]);
      }
    }
  }

  /// Ranks the children by the group's algorithm and returns the first min(count, open_children) with available nodes.
  void rank(std::uint64_t seed, const Group& group, std::size_t count, Picks& ranked) const {
    ranked.size = 0;
    const std::size_t wanted = std::min<std::size_t>(count, group.open_children);
    const auto offer = [&](std::uint32_t at) {
      if (children_[at].available > 0 && !ranked.contains(at)) ranked.push_back(at);
    };
    switch (group.kind) {
      case PlacementKind::Uniform: {
        const std::uint64_t hash = straw2::hash_of_child(seed, group.id);
        const std::uint64_t size = group.children();
        const std::uint64_t stride = kStridePrimes[hash & 15] % size;
        std::uint64_t at = (hash >> 4) % size;
        for (; ranked.size < wanted; at = (at + stride) % size) {
          offer(group.first_child + static_cast<std::uint32_t>(at));
        }
        return;
      }
      case PlacementKind::List:
      case PlacementKind::Tree:
        for (std::uint64_t draw = 0; ranked.size < wanted && draw < draws_max(count); ++draw) {
          const std::uint64_t draw_seed = straw2::mix(seed + draw * 0x9e3779b97f4a7c15u);
          offer(group.kind == PlacementKind::List ? draw_in_list(draw_seed, group) : draw_in_tree(draw_seed, group));
        }
        break;
      default:
        if (wanted == 1 && group.has_equal_weights && pick_one_by_straw2(seed, group, ranked)) return;
        break;
    }
    if (ranked.size < wanted) rank_by_straw2(seed, group, wanted, ranked);
  }

  /// Picks the first child that rank_by_straw2() would return, if all have the same weight. Needs no logarithms: the
  /// highest hash has the lowest cost. Returns false if another hash is so near that both may have the same cost.
  bool pick_one_by_straw2(std::uint64_t seed, const Group& group, Picks& ranked) const {
    constexpr std::uint64_t kNear = std::uint64_t{1} << 32;
    std::uint64_t best = 0;
    std::uint64_t second = 0;
    std::uint32_t best_at = 0;
    for (std::uint32_t at = group.first_child; at < group.child_end; ++at) {
      const Child& child = children_[at];
      const std::uint64_t hash = child.available > 0 ? straw2::hash_of_child(seed, child.id) : 0;
      second = std::max(second, std::min(best, hash));
      best_at = hash > best ? at : best_at;
      best = std::max(best, hash);
    }
    if (best - second < kNear) return false;
    ranked.push_back(best_at);
    return true;
  }

  void rank_by_straw2(std::uint64_t seed, const Group& group, std::size_t wanted, Picks& ranked) const {
    straw2::Ranking ranking(wanted - ranked.size);
    for (std::uint32_t at = group.first_child; at < group.child_end; ++at) {
      const Child& child = children_[at];
      if (child.available == 0 || ranked.contains(at)) continue;
      ranking.add({straw2::cost_of_hash(straw2::hash_of_child(seed, child.id)), child.weight, child.id, at, 1});
    }
    for (std::size_t i = 0; i < ranking.size(); ++i) ranked.push_back(ranking[i].position);
  }

  static std::uint64_t part_of(std::uint64_t hash, std::uint64_t weight) {
    return static_cast<std::uint64_t>((Uint128{hash} * weight) >> 64);
  }

  /// Draws a child by the list algorithm. Children are in the order in which they were added; the newest chooses first.
  std::uint32_t draw_in_list(std::uint64_t seed, const Group& group) const {
    for (std::uint32_t at = group.child_end - 1; at > group.first_child; --at) {
      const Child& child = children_[at];
      if (part_of(straw2::hash_of_child(seed, child.id), child.weight_through) < child.weight) return at;
    }
    return group.first_child;
  }

  std::uint32_t draw_in_tree(std::uint64_t seed, const Group& group) const {
    const std::uint64_t* const weights = &tree_weights_[group.tree_weights];
    const std::uint64_t group_seed = seed ^ group.id;
    std::uint32_t node = group.tree_leaves;
    for (std::uint32_t half = group.tree_leaves / 2; half > 0; half /= 2) {
      const std::uint64_t drawn = part_of(straw2::hash_of_child(group_seed, node), weights[node]);
      node = drawn < weights[node - half] ? node - half : node + half;
    }
    return group.first_child + node / 2;
  }

  void follow_rule(std::uint64_t seed, std::size_t wanted, NodeList& list) const {
    Picks working;
    working.size = 0;
    for (const Step& step : rule_) {
      switch (step.action) {
        case PlacementStep::Action::Take:
          working.size = 0;
          working.push_back(step.group);
          break;
        case PlacementStep::Action::Select: {
          Picks next;
          next.size = 0;
          for (std::uint32_t i = 0; i < working.size; ++i) {
            Picks part;
            select(seed, working.items[i], step.count, step.level, part);
            for (std::uint32_t k = 0; k < part.size && next.size < kMaxRedundancy; ++k) next.push_back(part.items[k]);
          }
          working = next;
          break;
        }
        case PlacementStep::Action::Emit:
          for (std::uint32_t i = 0; i < working.size && list.size() < wanted; ++i) {
            const std::uint16_t node = static_cast<std::uint16_t>(working.items[i]);
            if (!list.contains(node)) list.push_back(node);
          }
          break;
      }
    }
  }

  std::vector<Group> groups_;  // In the order of flat_groups().
  std::vector<Child> children_;
  std::vector<std::uint64_t> tree_weights_;
  std::vector<Step> rule_;
};

}  // namespace

NodeList MapWithExceptions::ideal_nodes(BucketId bucket) const {
  const std::uint64_t key = placement_key(bucket, state_->bits());
  return with_exceptions(place(key), key, *state_, *distribution_);
}

std::shared_ptr<const PlacementMap> make_tree_map(StatePointer state, DistributionPointer distribution,
                                                  const PlacementSettings& settings) {
  return std::make_shared<const TreeMap>(std::move(state), std::move(distribution), settings);
}

}  // namespace fjord
