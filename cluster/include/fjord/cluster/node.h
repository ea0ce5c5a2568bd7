#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "fjord/common/result.h"

namespace fjord {

/// The node types that a cluster state describes. The numbers travel on the wire.
enum class NodeType : std::uint8_t { Storage = 1, Distributor = 2 };

/// Every index of a node is below this number, so that the count of nodes fits into 16 bits, too.
inline constexpr std::uint16_t kMaxNodeCount = 65535;

/// Returns "storage" or "distributor".
std::string_view to_string(NodeType type);

/// Names one node of a cluster, for example storage.2.
struct NodeId {
  NodeType type = NodeType::Storage;
  std::uint16_t index = 0;

  static constexpr NodeId storage(std::uint16_t node_index) { return {NodeType::Storage, node_index}; }
  static constexpr NodeId distributor(std::uint16_t node_index) { return {NodeType::Distributor, node_index}; }

  /// Parses what to_string() returns. Errors: InvalidArgument.
  static Result<NodeId> parse(std::string_view text);
  /// Returns for example "storage.2".
  std::string to_string() const;

  friend constexpr auto operator<=>(const NodeId&, const NodeId&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const NodeId& node) { return out << node.to_string(); }

}  // namespace fjord

template <>
struct std::hash<fjord::NodeId> {
  std::size_t operator()(const fjord::NodeId& node) const noexcept {
    return (static_cast<std::size_t>(node.type) << 16) | node.index;
  }
};
