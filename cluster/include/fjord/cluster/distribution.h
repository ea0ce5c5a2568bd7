#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord {

/// The most replicas a bucket can have.
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
  /// Factor on the sum of the capacities below.
  double capacity = 1.0;
  std::vector<Node> nodes;
  std::vector<DistributionGroup> groups;

  friend bool operator==(const DistributionGroup&, const DistributionGroup&) = default;
};

/// How many replicas a bucket has, and the tree of groups they are spread over. Immutable; shared between components as
/// std::shared_ptr<const DistributionConfig>.
///
/// Text form: `redundancy:2 (root (rack_a 0 1 2*0.5) (rack_b*2 3-5))`, where `*` gives a capacity other than 1 and
/// `3-5` means the nodes 3 4 5. A node occurs once at most.
class DistributionConfig {
 public:
  /// The tree as arrays, parents before children, for placement algorithms. The storage nodes of a group and of all
  /// groups below it are contiguous in flat_nodes().
  struct FlatGroup {
    std::uint64_t id = 0;  ///< Hash of the name.
    double capacity = 1.0;
    std::uint32_t first_node = 0;
    std::uint32_t node_end = 0;
    std::uint32_t group_end = 0;  ///< One past the last group below this one; the first one follows it directly.
    bool is_leaf = true;
  };

  /// Redundancy 1 over a group "root" without nodes.
  DistributionConfig();

  /// Errors: InvalidArgument if a rule above is broken.
  static Result<DistributionConfig> make(unsigned redundancy, DistributionGroup root);
  /// Errors: InvalidArgument with the column.
  static Result<DistributionConfig> parse(std::string_view text);
  /// One group "root" with the nodes 0 to node_count - 1.
  static DistributionConfig flat(std::uint16_t node_count, unsigned redundancy);

  /// From 1 to kMaxRedundancy.
  unsigned redundancy() const { return redundancy_; }
  const DistributionGroup& root() const { return root_; }
  /// The number of configured storage nodes.
  std::size_t node_count() const { return flat_nodes_.size(); }
  bool contains_node(std::uint16_t index) const;
  /// The same tree with another redundancy, from 1 to kMaxRedundancy.
  DistributionConfig with_redundancy(unsigned redundancy) const;
  /// The canonical text; parse() gives back an equal configuration.
  std::string to_string() const;

  std::span<const FlatGroup> flat_groups() const { return flat_groups_; }
  std::span<const DistributionGroup::Node> flat_nodes() const { return flat_nodes_; }

  friend bool operator==(const DistributionConfig& a, const DistributionConfig& b) {
    return a.redundancy_ == b.redundancy_ && a.root_ == b.root_;
  }

 private:
  DistributionConfig(unsigned redundancy, DistributionGroup root);
  void flatten(const DistributionGroup& group);

  unsigned redundancy_ = 1;
  DistributionGroup root_;
  std::vector<FlatGroup> flat_groups_;
  std::vector<DistributionGroup::Node> flat_nodes_;
};

inline std::ostream& operator<<(std::ostream& out, const DistributionConfig& c) { return out << c.to_string(); }

}  // namespace fjord
