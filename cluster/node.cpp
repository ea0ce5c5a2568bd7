#include "fjord/cluster/node.h"

#include <fmt/format.h>

#include "text.h"

namespace fjord {

std::string_view to_string(NodeType type) { return type == NodeType::Storage ? "storage" : "distributor"; }

Result<NodeId> NodeId::parse(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) {
    return Status(StatusCode::InvalidArgument, fmt::format("not a node: '{}' (expected <type>.<index>)", text));
  }
  const std::string_view type = text.substr(0, dot);
  if (type != "storage" && type != "distributor") {
    return Status(StatusCode::InvalidArgument,
                  fmt::format("unknown node type '{}' in '{}': expected storage or distributor", type, text));
  }
  const auto index = cluster_text::parse_number<std::uint16_t>(text.substr(dot + 1));
  if (!index || *index >= kMaxNodeCount) {
    return Status(StatusCode::InvalidArgument, fmt::format("not a node index in '{}': '{}' (expected 0 to {})", text,
                                                           text.substr(dot + 1), kMaxNodeCount - 1));
  }
  return NodeId{type == "storage" ? NodeType::Storage : NodeType::Distributor, *index};
}

std::string NodeId::to_string() const { return fmt::format("{}.{}", fjord::to_string(type), index); }

}  // namespace fjord
