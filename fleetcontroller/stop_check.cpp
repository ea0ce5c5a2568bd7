#include "stop_check.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>

namespace fjord::fleetcontroller {
namespace {

/// Number of distribution bits above which only a sample of the buckets is checked.
constexpr unsigned kBitsLookedAt = 16;

bool contains(const std::vector<NodeId>& nodes, NodeId id) {
  return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
}

std::string names(const std::vector<NodeId>& nodes) {
  std::string text;
  for (NodeId id : nodes) text += (text.empty() ? "" : ", ") + id.to_string();
  return text;
}

/// Returns the id of the group directly below the root that holds the node; empty: there is none.
std::string top_group(const DistributionConfig& distribution, std::uint16_t index) {
  const auto groups = distribution.flat_groups();
  const auto nodes = distribution.flat_nodes();
  for (std::size_t g = 1; g < groups.size(); g = groups[g].group_end) {
    for (std::uint32_t i = groups[g].first_node; i < groups[g].node_end; ++i) {
      if (nodes[i].index == index) return std::to_string(groups[g].id);
    }
  }
  return {};
}

class StopCheck {
 public:
  StopCheck(const ClusterFacts& facts, const std::vector<NodeId>& nodes) : facts_(facts) {
    for (NodeId id : nodes) {
      const NodeFacts* node = facts.find(id);
      if (node == nullptr) {
        add(id.to_string() + " is not known");
      } else if (id.type == NodeType::Distributor) {
        distributors_.push_back(id);
      } else {
        all_storage_.push_back(id);
        if (!holds_nothing(*node)) storage_.push_back(id);
      }
    }
  }

  std::vector<std::string> run() {
    if (!distributors_.empty()) {
      check_distributors();
      check_share_left(NodeType::Distributor, distributors_, facts_.distributors_up_ratio_min,
                       "controller.distributors_up_ratio_min");
    }
    if (!storage_.empty()) {
      if (facts_.is_changing) add("a new cluster state is on its way");
      check_in_sync();
      check_others_away();
      check_replicas_left();
    }
    if (!all_storage_.empty()) {
      check_share_left(NodeType::Storage, all_storage_, facts_.storage_up_ratio_min, "controller.storage_up_ratio_min");
    }
    return std::move(reasons_);
  }

  /// Checks only that all buckets have their replicas and that no new cluster state is pending.
  std::vector<std::string> run_in_sync() {
    if (facts_.is_changing) add("a new cluster state is on its way");
    check_in_sync();
    return std::move(reasons_);
  }

 private:
  void add(std::string reason) { reasons_.push_back(std::move(reason)); }

  bool holds_nothing(const NodeFacts& node) const {
    return node.is_fresh && node.state_version == facts_.active.version() && node.buckets == 0;
  }

  void check_distributors() {
    const bool other = std::any_of(facts_.nodes.begin(), facts_.nodes.end(), [&](const NodeFacts& node) {
      return node.id.type == NodeType::Distributor && !contains(distributors_, node.id) && node.is_fresh &&
             node.state == NodeState::Up;
    });
    if (!other) add("no other distributor is up than " + names(distributors_));
  }

  void check_in_sync() {
    for (const NodeFacts& node : facts_.nodes) {
      if (node.id.type != NodeType::Distributor || node.state != NodeState::Up) continue;
      const std::string name = node.id.to_string();
      if (!node.is_fresh) {
        add(name + " does not answer, so its buckets are not known");
      } else if (node.state_version != facts_.active.version()) {
        add(fmt::format("{} speaks of cluster state {}, and {} is active", name, node.state_version,
                        facts_.active.version()));
      } else {
        const auto count = [&](std::uint64_t buckets, const char* what) {
          if (buckets != 0) add(fmt::format("{} has {} buckets {}", name, buckets, what));
        };
        count(node.buckets_out_of_sync, "that are not in sync or have too few replicas");
        count(node.buckets_unavailable, "that cannot be served");
        count(node.buckets_damaged, "of which a replica is damaged");
      }
    }
  }

  /// Returns the unit that controller.groups_out_max counts: the node's group below the root or, without one, the node.
  std::string unit_of(NodeId id) const {
    const std::string group = top_group(*facts_.active.distribution, id.index);
    return group.empty() ? id.to_string() : "group " + group;
  }

  void check_others_away() {
    std::set<std::string> stopping;
    for (NodeId id : storage_) stopping.insert(unit_of(id));
    std::set<std::string> out = stopping;
    std::vector<const NodeFacts*> others;
    for (const NodeFacts& node : facts_.nodes) {
      if (node.id.type != NodeType::Storage || contains(storage_, node.id) || is_available(node.state)) continue;
      if (!facts_.active.distribution->contains_node(node.id.index)) continue;
      out.insert(unit_of(node.id));
      if (!stopping.contains(unit_of(node.id))) others.push_back(&node);
    }
    if (out.size() <= facts_.groups_out_max) return;
    const std::string limit = fmt::format("controller.groups_out_max is {}", facts_.groups_out_max);
    for (const NodeFacts* node : others) {
      add(fmt::format("{} is {} already, and {}", node->id.to_string(), fjord::to_string(node->state), limit));
    }
    if (stopping.size() <= facts_.groups_out_max) return;
    const bool has_groups = stopping.begin()->starts_with("group ");
    add(has_groups ? fmt::format("the nodes are in {} different groups, and {}", stopping.size(), limit)
                   : fmt::format("without groups each storage node counts as one: {} of them, and {}", stopping.size(),
                                 limit));
  }

  /// Adds a reason if the whole cluster would be down without these nodes.
  void check_share_left(NodeType type, const std::vector<NodeId>& stopping, double ratio_min,
                        std::string_view setting) {
    std::size_t all = 0;
    std::size_t left = 0;
    for (const NodeFacts& node : facts_.nodes) {
      if (node.id.type != type) continue;
      ++all;
      left += is_available(node.state) && !contains(stopping, node.id) ? 1 : 0;
    }
    if (static_cast<double>(left) >= ratio_min * static_cast<double>(all)) return;
    add(fmt::format("the cluster would be down: {} of {} {} nodes would be up, and {} is {:.2f}", left, all,
                    fjord::to_string(type), setting, ratio_min));
  }

  void check_replicas_left() {
    const unsigned bits = std::min(facts_.active.bits(), kBitsLookedAt);
    const ClusterView places = view_of_places(facts_.active);
    const auto stays = [&](std::uint16_t index) {
      const NodeId id = NodeId::storage(index);
      return !contains(storage_, id) && is_available(facts_.active.node(id).state);
    };
    std::uint64_t lost = 0;
    for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
      const NodeList ideal = places.ideal_nodes(BucketId(facts_.active.bits(), i));
      const bool kept = std::any_of(ideal.begin(), ideal.end(), stays);
      lost += kept || ideal.empty() ? 0 : 1;
    }
    if (lost != 0) {
      add(fmt::format("{} of {} parts of the cluster have no replica elsewhere (redundancy {})", lost,
                      std::uint64_t{1} << bits, facts_.active.redundancy()));
    }
  }

  const ClusterFacts& facts_;
  std::vector<NodeId> all_storage_;
  std::vector<NodeId> storage_;  ///< Those that hold something, or may.
  std::vector<NodeId> distributors_;
  std::vector<std::string> reasons_;
};

}  // namespace

const NodeFacts* ClusterFacts::find(NodeId id) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NodeFacts& node) { return node.id == id; });
  return found == nodes.end() ? nullptr : &*found;
}

std::vector<std::string> why_not_stop(const ClusterFacts& facts, const std::vector<NodeId>& nodes) {
  return StopCheck(facts, nodes).run();
}

namespace {

/// Returns the text that explains why a retired node keeps replicas; empty: it does not. The distributor keeps them
/// while other nodes are away and there would be too few replicas without them (wanted_members()).
std::string why_kept(const ClusterFacts& facts) {
  std::string away;
  std::size_t up = 0;
  bool is_maintenance = false;
  for (const NodeFacts& node : facts.nodes) {
    if (node.id.type != NodeType::Storage || !facts.active.distribution->contains_node(node.id.index)) continue;
    if (node.state == NodeState::Up) {
      ++up;
    } else if (node.state != NodeState::Retired) {
      away += (away.empty() ? "" : ", ") + node.id.to_string();
      is_maintenance = is_maintenance || node.state == NodeState::Maintenance;
    }
  }
  if (away.empty() || (up >= facts.active.redundancy() && !is_maintenance)) return {};
  return ", and keeps those of which there would be too few replicas while these are away: " + away;
}

}  // namespace

std::vector<std::string> why_not_remove(const ClusterFacts& facts, const std::vector<NodeId>& nodes) {
  std::vector<std::string> reasons;
  for (NodeId id : nodes) {
    const NodeFacts* node = facts.find(id);
    if (node == nullptr || id.type == NodeType::Distributor) continue;
    const std::string name = id.to_string();
    if (!facts.active.distribution->contains_node(id.index)) continue;
    if (node->wanted.state != NodeState::Retired && node->wanted.state != NodeState::Down) {
      reasons.push_back(name + " is not retired: its replicas have to move to others first");
    } else if (!node->is_fresh) {
      reasons.push_back(name + " does not answer, so it is not known what it holds");
    } else if (node->state_version != facts.active.version()) {
      reasons.push_back(fmt::format("{} speaks of cluster state {}, and {} is active", name, node->state_version,
                                    facts.active.version()));
    } else if (node->buckets != 0) {
      reasons.push_back(fmt::format("{} still holds {} buckets{}", name, node->buckets, why_kept(facts)));
    }
  }
  return reasons;
}

std::vector<std::string> why_not_forget(const ClusterFacts& facts) {
  std::vector<std::string> reasons;
  for (const NodeFacts& node : facts.nodes) {
    if (node.id.type != NodeType::Distributor || node.state != NodeState::Up) continue;
    const std::string name = node.id.to_string();
    if (!node.is_fresh || node.state_version != facts.active.version()) {
      reasons.push_back(name + " does not say how its buckets are in the state that is in force");
    } else if (node.buckets_unavailable + node.buckets_collecting != 0) {
      reasons.push_back(fmt::format("{} has {} buckets that cannot be served, which may be there only", name,
                                    node.buckets_unavailable + node.buckets_collecting));
    }
  }
  return reasons;
}

std::vector<std::string> why_not_in_sync(const ClusterFacts& facts) {
  std::vector<std::string> reasons = StopCheck(facts, {}).run_in_sync();
  for (const NodeFacts& node : facts.nodes) {
    if (node.id.type != NodeType::Storage || !facts.active.distribution->contains_node(node.id.index)) continue;
    if (!is_available(node.state) || !node.is_fresh) {
      reasons.push_back(node.id.to_string() + " is away, and may hold buckets that no other node reports");
    }
  }
  return reasons;
}

std::vector<std::string> why_not_drain(const ClusterView& after) {
  const auto& all = after.distribution->flat_nodes();
  const auto left = std::count_if(all.begin(), all.end(), [&](const auto& node) {
    const NodeState state = after.state->node(NodeId::storage(node.index)).state;
    return node.capacity > 0 && (state == NodeState::Up || state == NodeState::Initializing);
  });
  if (left >= static_cast<std::ptrdiff_t>(after.redundancy())) return {};
  return {fmt::format("{} storage node{} would be left for {} replicas of each document", left, left == 1 ? "" : "s",
                      after.redundancy())};
}

}  // namespace fjord::fleetcontroller
