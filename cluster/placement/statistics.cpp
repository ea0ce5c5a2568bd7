#include <algorithm>
#include <cmath>

#include "fjord/cluster/placement_statistics.h"
#include "placement/weights.h"

namespace fjord {
namespace {

constexpr unsigned kStatisticsBitsMax = 28;

template <typename T>
std::shared_ptr<const T> copy_of(const T& value) {
  return std::make_shared<const T>(value);
}

/// Computes fair shares: divides replicas among the nodes, from the root down the tree.
class ShareDivider {
 public:
  ShareDivider(const ClusterState& state, const DistributionConfig& distribution)
      : state_(state), groups_(distribution.flat_groups()), nodes_(distribution.flat_nodes()) {}

  /// Divides `replicas` replicas. With `is_flat`, replicas are not kept in different groups.
  std::vector<double> divide(double replicas, bool is_flat) {
    if (is_flat) {
      std::vector<Part> parts;
      add_nodes(0, 1.0, parts);
      fill(parts, replicas);
      for (const Part& part : parts) set_share(part);
    } else {
      divide_group(0, replicas);
    }
    double sum = 0;
    for (const double share : shares_) sum += share;
    for (double& share : shares_) share /= sum;
    return std::move(shares_);
  }

 private:
  struct Part {
    double weight = 0;
    double room = 0;  ///< Number of available nodes.
    double cap = 0;
    double share = 0;
    std::uint32_t number = 0;
  };

  void set_share(const Part& part) {
    if (part.number >= shares_.size()) shares_.resize(part.number + std::size_t{1});
    shares_[part.number] = part.share;
  }

  /// Adds the available nodes of a leaf group.
  void add_nodes_of_leaf(const DistributionConfig::FlatGroup& leaf, double factor, std::vector<Part>& parts) const {
    for (std::uint32_t at = leaf.first_node; at < leaf.node_end; ++at) {
      const NodeStateInfo& info = state_.node(NodeId::storage(nodes_[at].index));
      const double weight = factor * static_cast<double>(weight_of_node(nodes_[at], info));
      if (weight > 0 && is_available_for_placement(info)) parts.push_back({weight, 1, 1, 0, nodes_[at].index});
    }
  }

  /// Adds the available nodes of all leaf groups below a group.
  void add_nodes(std::uint32_t group, double factor, std::vector<Part>& parts) const {
    const DistributionConfig::FlatGroup& flat = groups_[group];
    factor *= flat.capacity;
    if (flat.is_leaf) return add_nodes_of_leaf(flat, factor, parts);
    for (std::uint32_t child = group + 1; child < flat.group_end; child = groups_[child].group_end) {
      add_nodes(child, factor, parts);
    }
  }

  void divide_group(std::uint32_t group, double replicas) {
    const DistributionConfig::FlatGroup& flat = groups_[group];
    std::vector<Part> parts;
    if (flat.is_leaf) {
      add_nodes_of_leaf(flat, 1.0, parts);
    } else {
      for (std::uint32_t child = group + 1; child < flat.group_end; child = groups_[child].group_end) {
        const GroupWeight below = weight_of_group(child, state_, groups_, nodes_);
        if (below.available == 0) continue;
        parts.push_back({static_cast<double>(below.weight), static_cast<double>(below.available), 0, 0, child});
      }
      limit(parts, replicas);
    }
    fill(parts, replicas);
    for (const Part& part : parts) {
      if (flat.is_leaf) {
        set_share(part);
      } else {
        divide_group(part.number, part.share);
      }
    }
  }

  /// Sets the limit of each part: no group takes a second replica of a bucket while another group with room has none,
  /// and so on.
  static void limit(std::vector<Part>& parts, double replicas) {
    double sum = 0;
    for (double rounds = 1; sum < replicas - 1e-9 && rounds <= kMaxRedundancy; ++rounds) {
      sum = 0;
      for (Part& part : parts) {
        part.cap = std::min(rounds, part.room);
        sum += part.cap;
      }
    }
  }

  /// Divides the replicas in proportion to the weights. What exceeds the limit of a part goes to the other parts.
  static void fill(std::vector<Part>& parts, double replicas) {
    double left = replicas;
    double weight = 0;
    for (const Part& part : parts) weight += part.weight;
    std::vector<Part*> open;
    for (Part& part : parts) open.push_back(&part);
    std::sort(open.begin(), open.end(), [](const Part* a, const Part* b) {
      const double mine = a->cap * b->weight;
      const double theirs = b->cap * a->weight;
      return mine != theirs ? mine < theirs : a->number < b->number;
    });
    for (Part* part : open) {
      part->share = std::min(part->cap, left * part->weight / weight);
      left -= part->share;
      weight -= part->weight;
    }
  }

  const ClusterState& state_;
  std::span<const DistributionConfig::FlatGroup> groups_;
  std::span<const DistributionGroup::Node> nodes_;
  std::vector<double> shares_;
};

}  // namespace

std::vector<NodeList> place_all_buckets(const ClusterState& state, const DistributionConfig& distribution) {
  FJORD_CHECK(state.bits() <= kStatisticsBitsMax);
  const auto map = placement_algorithm().prepare(copy_of(state), copy_of(distribution));
  std::vector<NodeList> lists(std::size_t{1} << state.bits());
  for (std::size_t bucket = 0; bucket < lists.size(); ++bucket) {
    lists[bucket] = map->ideal_nodes(BucketId(state.bits(), bucket));
  }
  return lists;
}

std::vector<std::uint64_t> replicas_by_node(std::span<const NodeList> lists) {
  return bytes_by_node(lists, std::vector<std::uint64_t>(lists.size(), 1));
}

std::vector<std::uint64_t> bytes_by_node(std::span<const NodeList> lists, std::span<const std::uint64_t> bucket_bytes) {
  FJORD_CHECK(lists.size() == bucket_bytes.size());
  std::vector<std::uint64_t> loads;
  for (std::size_t bucket = 0; bucket < lists.size(); ++bucket) {
    for (const std::uint16_t node : lists[bucket]) {
      if (node >= loads.size()) loads.resize(node + std::size_t{1});
      loads[node] += bucket_bytes[bucket];
    }
  }
  return loads;
}

std::uint64_t moved_replicas(std::span<const NodeList> before, std::span<const NodeList> after) {
  FJORD_CHECK(before.size() == after.size());
  std::uint64_t count = 0;
  for (std::size_t bucket = 0; bucket < before.size(); ++bucket) {
    for (const std::uint16_t node : after[bucket]) count += before[bucket].contains(node) ? 0 : 1;
  }
  return count;
}

std::vector<double> fair_shares(const ClusterState& state, const DistributionConfig& distribution) {
  const GroupWeight all = weight_of_group(0, state, distribution.flat_groups(), distribution.flat_nodes());
  if (all.available == 0) return {};
  const bool is_flat = distribution.placement().kind() == PlacementKind::Rush;
  return ShareDivider(state, distribution).divide(std::min<double>(distribution.redundancy(), all.available), is_flat);
}

PlacementBalance balance_of(std::span<const std::uint64_t> loads, std::span<const double> shares) {
  double sum = 0;
  for (const std::uint64_t load : loads) sum += static_cast<double>(load);
  PlacementBalance balance;
  if (sum == 0) return balance;
  double squares = 0;
  std::size_t count = 0;
  for (std::size_t node = 0; node < shares.size(); ++node) {
    if (shares[node] == 0.0) continue;
    const double load = node < loads.size() ? static_cast<double>(loads[node]) : 0.0;
    const double ratio = load / (shares[node] * sum);
    balance.max_over_mean = std::max(balance.max_over_mean, ratio);
    balance.min_over_mean = count == 0 ? ratio : std::min(balance.min_over_mean, ratio);
    squares += (ratio - 1) * (ratio - 1);
    ++count;
  }
  if (count > 0) balance.stddev = std::sqrt(squares / static_cast<double>(count));
  return balance;
}

}  // namespace fjord
