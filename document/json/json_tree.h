#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"
#include "json_node.h"

namespace fjord {

/// Parses JSON into a flat array of nodes. Strings point into a copy of the text, in which they are unescaped in place.
/// So a document costs a constant number of allocations plus the growth of the array.
///
/// Lifetime: nodes and their strings live as long as the tree.
class JsonTree {
 public:
  /// Errors: InvalidArgument with the offset: not JSON, text after the value, strings that are not UTF-8, nesting
  /// deeper than kJsonDepthMax.
  /// TooLarge if there are more than `values_max` values.
  static Result<JsonTree> parse(std::string_view json, std::size_t values_max = SIZE_MAX);

  JsonTree(JsonTree&&) = default;
  JsonTree& operator=(JsonTree&&) = default;
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;

  const JsonNode& root() const { return nodes_[0]; }

  /// Index of the first child of an object or array: for (i = first(node); i != node.next; i = at(i).next).
  std::uint32_t first(const JsonNode& node) const { return static_cast<std::uint32_t>(&node - nodes_.data()) + 1; }
  const JsonNode& at(std::uint32_t index) const { return nodes_[index]; }
  /// The member of an object with this key; null if there is none.
  const JsonNode* member(const JsonNode& object, std::string_view key) const;

 private:
  JsonTree() = default;

  std::vector<char> text_;  // a vector, because moving a short std::string would move its bytes
  std::vector<JsonNode> nodes_;
};

}  // namespace fjord
