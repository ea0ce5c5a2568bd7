// The algorithms that look at all nodes at once: RUSH-like, modulo, consistent hashing, rendezvous.

#include <bit>
#include <cmath>
#include <utility>

#include "placement/maps.h"
#include "placement/murmur3.h"
#include "placement/weights.h"

namespace fjord {
namespace {

using straw2::Uint128;

/// All configured nodes with their weights, and the groups below the root in which replicas are kept apart.
class FlatMap : public MapWithExceptions {
 public:
  enum class Groups { Apart, Ignored };

  FlatMap(StatePointer state_pointer, DistributionPointer distribution_pointer, Groups groups_are = Groups::Apart)
      : MapWithExceptions(std::move(state_pointer), std::move(distribution_pointer)) {
    const auto groups = distribution().flat_groups();
    add_nodes(0, 1.0);
    std::uint32_t domain = 0;
    const bool is_one_domain = groups[0].is_leaf || groups_are == Groups::Ignored;
    for (std::uint32_t top = 1; !is_one_domain && top < groups[0].group_end; top = groups[top].group_end) {
      for (std::uint32_t at = groups[top].first_node; at < groups[top].node_end; ++at) nodes_[at].domain = domain;
      ++domain;
    }
    std::vector<std::uint32_t> available_in(domain + 1, 0);
    for (const Node& node : nodes_) {
      if (!node.is_available) continue;
      ++available_;
      ++available_in[node.domain];
    }
    for (std::uint32_t rounds = 1; rounds <= kMaxRedundancy; ++rounds) {
      for (const std::uint32_t count : available_in) room_[rounds] += std::min(rounds, count);
    }
  }

 protected:
  struct Node {
    std::uint64_t weight = 0;
    double capacity = 0.0;  ///< Product of the capacities of the node, of all groups above it and in the cluster state.
    std::uint32_t domain = 0;
    std::uint16_t index = 0;
    bool is_available = false;
  };

  const std::vector<Node>& nodes() const { return nodes_; }
  std::size_t wanted() const { return std::min<std::size_t>(distribution().redundancy(), available_); }

  /// Chooses the nodes for a key. `each_candidate(offer)` offers the positions of candidates in order, until offer()
  /// returns false. Replicas go to the groups below the root in rounds: no group gets a second replica before every
  /// group has one (unless groups are ignored), and so on. Each round offers the candidates again. If the candidates do
  /// not suffice, rendezvous chooses the other nodes.
  template <typename EachCandidate>
  NodeList choose(std::uint64_t key, EachCandidate each_candidate) const {
    Chosen chosen;
    for (std::uint32_t rounds = 1; chosen.size < wanted(); ++rounds) {
      const std::size_t round_size = std::min<std::size_t>(wanted(), room_[rounds]);
      if (chosen.size == round_size) continue;
      each_candidate([&](std::uint32_t position) {
        if (may_choose(position, chosen, rounds)) chosen.positions[chosen.size++] = position;
        return chosen.size < round_size;
      });
      while (chosen.size < round_size) chosen.positions[chosen.size++] = best_draw(key, chosen, rounds);
    }
    NodeList list;
    for (std::uint32_t i = 0; i < chosen.size; ++i) list.push_back(nodes_[chosen.positions[i]].index);
    return list;
  }

 private:
  struct Chosen {
    std::array<std::uint32_t, kMaxRedundancy> positions;
    std::uint32_t size = 0;
  };

  void add_nodes(std::uint32_t group, double capacity) {
    const auto groups = distribution().flat_groups();
    const DistributionConfig::FlatGroup& flat = groups[group];
    capacity *= flat.capacity;
    for (std::uint32_t child = group + 1; !flat.is_leaf && child < flat.group_end; child = groups[child].group_end) {
      add_nodes(child, capacity);
    }
    for (std::uint32_t at = flat.first_node; flat.is_leaf && at < flat.node_end; ++at) {
      const DistributionGroup::Node& configured = distribution().flat_nodes()[at];
      const NodeStateInfo& info = state().node(NodeId::storage(configured.index));
      Node node;
      node.index = configured.index;
      node.capacity = capacity * configured.capacity * info.capacity;
      node.weight = straw2::weight_of(node.capacity);
      node.is_available = node.weight > 0 && is_available_for_placement(info);
      nodes_.push_back(node);
    }
  }

  bool may_choose(std::uint32_t position, const Chosen& chosen, std::uint32_t rounds) const {
    if (!nodes_[position].is_available) return false;
    std::uint32_t in_domain = 0;
    for (std::uint32_t i = 0; i < chosen.size; ++i) {
      if (chosen.positions[i] == position) return false;
      if (nodes_[chosen.positions[i]].domain == nodes_[position].domain) ++in_domain;
    }
    return in_domain < rounds;
  }

  std::uint32_t best_draw(std::uint64_t key, const Chosen& chosen, std::uint32_t rounds) const {
    const std::uint64_t seed = straw2::seed_of_key(key);
    straw2::Ranking best(1);
    for (std::uint32_t position = 0; position < nodes_.size(); ++position) {
      if (!may_choose(position, chosen, rounds)) continue;
      const std::uint64_t cost = straw2::cost_of_hash(straw2::hash_of_child(seed, nodes_[position].index));
      best.add({cost, nodes_[position].weight, nodes_[position].index, position, 1});
    }
    FJORD_CHECK(best.size() == 1);
    return best[0].position;
  }

  std::vector<Node> nodes_;  // In the order of flat_nodes().
  std::uint32_t available_ = 0;
  /// By the largest number of replicas in one group: the number of replicas for which all groups together have room.
  std::array<std::size_t, kMaxRedundancy + 1> room_{};
};

class RendezvousMap final : public FlatMap {
 public:
  using FlatMap::FlatMap;

 protected:
  NodeList place(std::uint64_t key) const override {
    return choose(key, [](auto) {});
  }
};

/// The primary is the node at key modulo n, where n is the number of configured nodes. Further replicas are on the
/// nodes that follow. The order takes nodes in turn from each group below the root, so that successive nodes are apart.
class ModuloMap final : public FlatMap {
 public:
  ModuloMap(StatePointer state_pointer, DistributionPointer distribution_pointer)
      : FlatMap(std::move(state_pointer), std::move(distribution_pointer)) {
    // Pairs (place of the node in its group, its position).
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order;
    for (std::uint32_t position = 0; position < nodes().size(); ++position) {
      const bool is_first = position == 0 || nodes()[position].domain != nodes()[position - 1].domain;
      order.emplace_back(is_first ? 0 : order.back().first + 1, position);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [place_in_group, position] : order) order_.push_back(position);
  }

 protected:
  NodeList place(std::uint64_t key) const override {
    return choose(key, [&](auto offer) {
      const std::size_t count = order_.size();
      std::size_t at = static_cast<std::size_t>(key % count);
      for (std::size_t i = 0; i < count && offer(order_[at]); ++i) at = at + 1 == count ? 0 : at + 1;
    });
  }

 private:
  std::vector<std::uint32_t> order_;
};

/// A ring of 64 bits with tokens at murmur3(node, number of the token). The replicas are on the nodes of the tokens
/// that follow murmur3(bucket).
class ConsistentMap final : public FlatMap {
 public:
  ConsistentMap(StatePointer state_pointer, DistributionPointer distribution_pointer, unsigned tokens_per_node)
      : FlatMap(std::move(state_pointer), std::move(distribution_pointer)) {
    for (std::uint32_t position = 0; position < nodes().size(); ++position) {
      const unsigned count = tokens_of(nodes()[position].capacity, tokens_per_node);
      for (unsigned number = 0; number < count; ++number) {
        const std::uint64_t name = (std::uint64_t{nodes()[position].index} << 32) | number;
        ring_.push_back({hash(name, kTokenSeed), position});
      }
    }
    std::sort(ring_.begin(), ring_.end(), [&](const Token& a, const Token& b) {
      return a.place != b.place ? a.place < b.place : nodes()[a.position].index < nodes()[b.position].index;
    });
    // Builds an index of the ring by the first bits of a place, with about one token for each entry.
    index_bits_ = static_cast<unsigned>(std::bit_width(ring_.size()));
    index_.resize((std::size_t{1} << index_bits_) + 1, static_cast<std::uint32_t>(ring_.size()));
    for (std::uint32_t at = static_cast<std::uint32_t>(ring_.size()); at-- > 0;) index_[index_of(ring_[at].place)] = at;
    for (std::size_t i = index_.size() - 1; i-- > 0;) index_[i] = std::min(index_[i], index_[i + 1]);
  }

 protected:
  NodeList place(std::uint64_t key) const override {
    return choose(key, [&](auto offer) {
      const std::uint64_t place_of_key = hash(key, kKeySeed);
      std::uint32_t at = index_[index_of(place_of_key)];
      const std::uint32_t size = static_cast<std::uint32_t>(ring_.size());
      while (at < size && ring_[at].place < place_of_key) ++at;
      for (std::uint32_t i = 0; i < size; ++i, ++at) {
        if (at >= size) at = 0;
        if (!offer(ring_[at].position)) return;
      }
    });
  }

 private:
  struct Token {
    std::uint64_t place;
    std::uint32_t position;
  };
  /// The largest number of tokens of a node, as a multiple of the tokens of a node with capacity 1.
  static constexpr double kTokensFactorMax = 64;
  /// Keys and tokens have different seeds; with one seed, the first buckets would lie on the tokens of node 0.
  static constexpr std::uint32_t kKeySeed = 0;
  static constexpr std::uint32_t kTokenSeed = 1;

  static unsigned tokens_of(double capacity, unsigned tokens_per_node) {
    if (!(capacity > 0.0)) return 0;
    return static_cast<unsigned>(std::max(1.0, std::min(capacity, kTokensFactorMax) * tokens_per_node + 0.5));
  }

  static std::uint64_t hash(std::uint64_t number, std::uint32_t seed) {
    std::array<char, 8> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(number >> (8 * i));
    return murmur3_128({bytes.data(), bytes.size()}, seed).low;
  }

  std::size_t index_of(std::uint64_t place_on_ring) const {
    return index_bits_ == 0 ? 0 : static_cast<std::size_t>(place_on_ring >> (64 - index_bits_));
  }

  std::vector<Token> ring_;
  std::vector<std::uint32_t> index_;
  unsigned index_bits_ = 0;
};

/// Leaf groups are batches in the order in which they were added. The newest batch chooses first: it takes its share of
/// the buckets, by its weight over the weight of itself and all older batches. Then the batch before it chooses. Within
/// a batch all nodes are equal; a stride chooses among them.
class RushMap final : public FlatMap {
 public:
  RushMap(StatePointer state_pointer, DistributionPointer distribution_pointer)
      : FlatMap(std::move(state_pointer), std::move(distribution_pointer), Groups::Ignored) {
    std::uint64_t sum = 0;
    for (const DistributionConfig::FlatGroup& flat : distribution().flat_groups()) {
      if (!flat.is_leaf || flat.first_node == flat.node_end) continue;
      std::uint64_t weight = 0;
      for (std::uint32_t at = flat.first_node; at < flat.node_end; ++at) weight += nodes()[at].weight;
      sum = std::min(sum + weight, straw2::kWeightMax);
      batches_.push_back({flat.id, weight, sum, flat.first_node, flat.node_end - flat.first_node});
    }
  }

 protected:
  NodeList place(std::uint64_t key) const override {
    const std::uint64_t seed = straw2::seed_of_key(key);
    return choose(key, [&](auto offer) {
      for (std::uint64_t draw = 0; draw < kDrawsMax; ++draw) {
        if (!offer(draw_node(seed, draw))) return;
      }
    });
  }

 private:
  struct Batch {
    std::uint64_t id;
    std::uint64_t weight;
    std::uint64_t weight_through;
    std::uint32_t first;
    std::uint32_t count;
  };
  static constexpr std::uint64_t kDrawsMax = 128;
  static constexpr std::uint64_t kStridePrime = 65537;

  std::uint32_t draw_node(std::uint64_t seed, std::uint64_t draw) const {
    const std::uint64_t draw_seed = straw2::mix(seed + draw * 0x9e3779b97f4a7c15u);
    std::size_t at = batches_.size() - 1;
    for (; at > 0; --at) {
      const Uint128 product = Uint128{straw2::hash_of_child(draw_seed, batches_[at].id)} * batches_[at].weight_through;
      if (static_cast<std::uint64_t>(product >> 64) < batches_[at].weight) break;
    }
    const Batch& batch = batches_[at];
    const std::uint64_t start = straw2::hash_of_child(seed, batch.id);
    return batch.first + static_cast<std::uint32_t>((start % batch.count + draw * kStridePrime) % batch.count);
  }

  std::vector<Batch> batches_;
};

}  // namespace

std::shared_ptr<const PlacementMap> make_rush_map(StatePointer state, DistributionPointer distribution) {
  return std::make_shared<const RushMap>(std::move(state), std::move(distribution));
}

std::shared_ptr<const PlacementMap> make_modulo_map(StatePointer state, DistributionPointer distribution) {
  return std::make_shared<const ModuloMap>(std::move(state), std::move(distribution));
}

std::shared_ptr<const PlacementMap> make_consistent_map(StatePointer state, DistributionPointer distribution,
                                                        unsigned tokens_per_node) {
  return std::make_shared<const ConsistentMap>(std::move(state), std::move(distribution), tokens_per_node);
}

std::shared_ptr<const PlacementMap> make_rendezvous_map(StatePointer state, DistributionPointer distribution) {
  return std::make_shared<const RendezvousMap>(std::move(state), std::move(distribution));
}

}  // namespace fjord
