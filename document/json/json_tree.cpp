#include "json_tree.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "json_events.h"

namespace fjord {
namespace {

/// Collects the values of JsonEvents.
class TreeBuilder {
 public:
  TreeBuilder(std::vector<JsonNode>& nodes, std::size_t nodes_max) : nodes_(nodes), nodes_max_(nodes_max) {}

  bool key(std::string_view name) {
    key_ = name;
    return true;
  }
  bool scalar(const JsonNode& value) {
    if (nodes_.size() == nodes_max_) {
      is_full_ = true;
      return false;
    }
    JsonNode& node = nodes_.emplace_back(value);
    node.key = std::exchange(key_, {});
    node.next = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }
  bool start(const JsonNode& value) {
    if (!scalar(value)) return false;
    open_[depth_++] = static_cast<std::uint32_t>(nodes_.size() - 1);
    return true;
  }
  bool end() {
    nodes_[open_[--depth_]].next = static_cast<std::uint32_t>(nodes_.size());
    return true;
  }

  bool is_full() const { return is_full_; }

 private:
  std::vector<JsonNode>& nodes_;
  const std::size_t nodes_max_;
  bool is_full_ = false;
  std::array<std::uint32_t, kJsonDepthMax> open_{};
  std::size_t depth_ = 0;  // number of entries in use in open_
  std::string_view key_;
};

}  // namespace

Result<JsonTree> JsonTree::parse(std::string_view json, std::size_t values_max) {
  JsonTree tree;
  FJORD_TRY_ASSIGN(tree.text_, json_in_situ(json));
  tree.nodes_.reserve(16 + std::min<std::size_t>(json.size() / 16, 4096));
  TreeBuilder builder(tree.nodes_, values_max);
  FJORD_TRY(JsonEvents(builder, tree.text_).read());
  if (builder.is_full()) {
    return Status(StatusCode::TooLarge, fmt::format("more than {} values of JSON", values_max));
  }
  return tree;
}

const JsonNode* JsonTree::member(const JsonNode& object, std::string_view key) const {
  if (object.kind != JsonNode::Kind::Object) return nullptr;
  for (std::uint32_t i = first(object); i != object.next; i = nodes_[i].next) {
    if (nodes_[i].key == key) return &nodes_[i];
  }
  return nullptr;
}

}  // namespace fjord
