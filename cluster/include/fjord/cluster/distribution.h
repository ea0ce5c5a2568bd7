#pragma once

#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord {

/// The largest number of replicas of a bucket.
inline constexpr unsigned kMaxRedundancy = 16;

/// A part of the cluster that can fail as a whole, e.g. a rack or a host. Holds storage nodes or further groups, not
/// both.
struct DistributionGroup {
  struct Node {
    std::uint16_t index = 0;
    /// Relative weight; multiplied with the capacity in the cluster state. 0: takes no replicas.
    double capacity = 1.0;
    friend bool operator==(const Node&, const Node&) = default;
  };

  /// Letters, digits, '_', '-', '.', beginning with a letter or '_'; unique in the tree. Placement depends on it: a
  /// group that is renamed counts as another group.
  std::string name;
  /// Factor that multiplies the sum of the capacities below the group.
  double capacity = 1.0;
  std::vector<Node> nodes;
  std::vector<DistributionGroup> groups;

  friend bool operator==(const DistributionGroup&, const DistributionGroup&) = default;
};

/// An algorithm that maps buckets to nodes. The numbers never leave a process; texts have the names.
///
/// The first four are hierarchical (CRUSH's kinds of buckets): in each group the children are ranked by one of them.
/// The others look at all nodes at once. cluster/README.md compares them.
enum class PlacementKind : std::uint8_t {
  Straw2,   ///< "straw2": the children with the best random draws; moves least on every change. The default.
  Uniform,  ///< "uniform": takes the children in a random order that depends on the bucket; ignores capacities.
  List,     ///< "list": from the newest child to the oldest, each takes its share of the buckets that are left.
  Tree,     ///< "tree": goes down a binary tree whose leaves are the children.
  Rush,     ///< "rush": each leaf group is a batch of nodes that were added together; the newest batch chooses first.
  Modulo,   ///< "modulo": the bucket's number modulo the number of nodes, then the next nodes; ignores capacities.
  Consistent,  ///< "consistent": the nodes of the tokens that follow the bucket on a ring.
  Rendezvous,  ///< "rendezvous": the nodes with the highest random numbers, weighted by capacity.
};

inline constexpr std::array<PlacementKind, 8> kPlacementKinds = {
    PlacementKind::Straw2, PlacementKind::Uniform, PlacementKind::List,       PlacementKind::Tree,
    PlacementKind::Rush,   PlacementKind::Modulo,  PlacementKind::Consistent, PlacementKind::Rendezvous};

std::string_view to_string(PlacementKind kind);
/// Returns the algorithm of this name. Errors: InvalidArgument.
Result<PlacementKind> placement_kind_of(std::string_view name);
inline std::ostream& operator<<(std::ostream& out, PlacementKind kind) { return out << to_string(kind); }
constexpr bool is_hierarchical(PlacementKind kind) { return kind <= PlacementKind::Tree; }

/// A step of a placement rule, as in CRUSH. A rule works on a list of groups and nodes.
struct PlacementStep {
  enum class Action : std::uint8_t {
    Take,  ///< "take(NAME)": the list becomes the named group.
    /// "select(COUNT,LEVEL)": replaces each group of the list by COUNT distinct groups of the level inside of it.
    Select,
    Emit,  ///< "emit": adds the nodes of the list to the result.
  };
  /// The level of storage nodes, "node" in the text. The children of the root are at level 1.
  static constexpr unsigned kNodeLevel = 255;

  Action action = Action::Emit;
  std::string group;   ///< Take: name of the group.
  unsigned count = 0;  ///< Select: number of groups or nodes; 0: the redundancy.
  /// Select: level of the selected groups or nodes. A leaf group above this level is selected in place of them.
  unsigned level = kNodeLevel;

  friend bool operator==(const PlacementStep&, const PlacementStep&) = default;
};

/// The algorithm that places the buckets of a cluster, and its parameters.
struct PlacementSettings {
  static constexpr unsigned kDefaultTokens = 200;
  static constexpr unsigned kTokensMax = 10000;

  /// The algorithms by level of the tree. The first one is for the root, and the last one is also for all levels below.
  /// An algorithm that looks at all nodes at once is the only one in the list.
  std::vector<PlacementKind> levels = {PlacementKind::Straw2};
  /// Only for Consistent: number of ring tokens of a node with capacity 1.
  unsigned tokens_per_node = kDefaultTokens;
  /// The placement rule; only hierarchical algorithms may have one. Without a rule, the nodes are spread over the
  /// groups of every level. If a rule gives fewer nodes than the redundancy, the others are chosen as without a rule.
  std::vector<PlacementStep> rule;

  PlacementKind kind() const { return levels.front(); }
  friend bool operator==(const PlacementSettings&, const PlacementSettings&) = default;
};

/// The number of replicas of a bucket, the tree of groups over which they are spread, and the algorithm that spreads
/// them. Immutable; shared between components as std::shared_ptr<const DistributionConfig>.
///
/// Text form: `redundancy:2 (root (rack_a 0 1 2*0.5) (rack_b*2 3-5))`, where `*` gives a capacity other than 1 and
/// `3-5` means the nodes 3 4 5. A node occurs at most once. The tree may be preceded by an algorithm (default: straw2)
/// and a rule: `algorithm:tree,uniform rule:take(root);select(2,1);select(1,node);emit`. The tokens of consistent
/// hashing follow a star: `algorithm:consistent*50`.
class DistributionConfig {
 public:
  /// A group of the tree in array form, parents before children, for placement algorithms. The storage nodes of a group
  /// and of all groups below it are contiguous in flat_nodes().
  struct FlatGroup {
    std::uint64_t id = 0;  ///< Hash of the group's name.
    double capacity = 1.0;
    std::uint32_t first_node = 0;
    std::uint32_t node_end = 0;
    std::uint32_t group_end = 0;  ///< One past the last group below this one; those groups follow this one directly.
    bool is_leaf = true;
  };

  /// Returns the FlatGroup::id of the group with this name.
  static std::uint64_t group_id(std::string_view name);

  /// Makes a distribution with redundancy 1 and a group "root" without nodes.
  DistributionConfig();

  /// Makes a distribution. Errors: InvalidArgument if redundancy or tree break a rule in the description of the class.
  static Result<DistributionConfig> make(unsigned redundancy, DistributionGroup root);
  /// Parses the text form. Errors: InvalidArgument that names the column.
  static Result<DistributionConfig> parse(std::string_view text);
  /// Returns a distribution with one group "root" that has the nodes 0 to node_count - 1.
  static DistributionConfig flat(std::uint16_t node_count, unsigned redundancy);

  /// Returns the number of replicas of a bucket, from 1 to kMaxRedundancy.
  unsigned redundancy() const { return redundancy_; }
  const DistributionGroup& root() const { return root_; }
  /// Returns the number of configured storage nodes.
  std::size_t node_count() const { return flat_nodes_.size(); }
  bool contains_node(std::uint16_t index) const;
  const PlacementSettings& placement() const { return placement_; }
  /// Returns the same tree with another redundancy, from 1 to kMaxRedundancy.
  DistributionConfig with_redundancy(unsigned redundancy) const;
  /// Returns the same tree with other placement settings. Errors: InvalidArgument if they do not fit the tree.
  Result<DistributionConfig> with_placement(PlacementSettings placement) const;
  /// Returns the canonical text, from which parse() makes an equal configuration.
  std::string to_string() const;

  std::span<const FlatGroup> flat_groups() const { return flat_groups_; }
  std::span<const DistributionGroup::Node> flat_nodes() const { return flat_nodes_; }

  friend bool operator==(const DistributionConfig& a, const DistributionConfig& b) {
    return a.redundancy_ == b.redundancy_ && a.placement_ == b.placement_ && a.root_ == b.root_;
  }

 private:
  DistributionConfig(unsigned redundancy, DistributionGroup root);
  void flatten(const DistributionGroup& group);

  unsigned redundancy_ = 1;
  PlacementSettings placement_;
  DistributionGroup root_;
  std::vector<FlatGroup> flat_groups_;
  std::vector<DistributionGroup::Node> flat_nodes_;
};

inline std::ostream& operator<<(std::ostream& out, const DistributionConfig& c) { return out << c.to_string(); }

}  // namespace fjord
