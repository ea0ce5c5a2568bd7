#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/common/status.h"
#include "maintenance/need.h"

namespace fjord::distributor {

/// How full the disks of storage nodes are, from their reports each second and from their refusals in between. Confined
/// to the distributor's executor.
class StorageSpace {
 public:
  /// Stages as on the wire: those of storage::SpaceStage plus one; 0: not known.
  static constexpr std::uint16_t kUnknown = 0;
  static constexpr std::uint16_t kWarn = 2;
  static constexpr std::uint16_t kThrottle = 3;
  static constexpr std::uint16_t kRefuseExternal = 4;
  static constexpr std::uint16_t kRefuseAll = 5;

  void update(std::uint16_t node, std::uint16_t stage, const std::string& reason) {
    if (stage < kWarn) {
      nodes_.erase(node);
    } else {
      nodes_[node] = {.stage = stage, .reason = reason, .refusal = {}, .exceeded = exceeded_in(reason)};
    }
  }
  /// Notes that the node refused a put with NO_SPACE, as a node does from `stage` on. `why` names node, use and limit.
  void note_refusal(std::uint16_t node, std::uint16_t stage, const Status& why) {
    Node& known = nodes_[node];
    known.stage = std::max(known.stage, stage);
    known.refusal = why.message();
    if (!why.setting().empty()) known.exceeded = {.node = {}, .limit = why.limit(), .setting = why.setting()};
  }
  /// Forgets the stage of a node that is away. The node reports it again when it is back.
  void forget(std::uint16_t node) { nodes_.erase(node); }

  std::uint16_t stage(std::uint16_t node) const {
    const auto at = nodes_.find(node);
    return at == nodes_.end() ? kUnknown : at->second.stage;
  }
  /// Returns OK if all these nodes take puts of clients; otherwise NO_SPACE with the reason of the first that refuses
  /// them.
  Status check_put(const std::vector<std::uint16_t>& members) const {
    if (nodes_.empty()) return Status::ok();
    for (std::uint16_t node : members) {
      if (stage(node) < kRefuseExternal) continue;
      ErrorDetails details = nodes_.at(node).exceeded;
      details.node = "storage." + std::to_string(node);
      return {StatusCode::NoSpace, describe(node), std::move(details)};
    }
    return Status::ok();
  }
  /// Returns true if a replica on the node may be filled for this need: a move below kWarn, a replica that redundancy
  /// needs below kThrottle, where clients would have to wait for the node. A replica that has nearly everything is
  /// filled as far as its node takes merges. Without it there would be fewer replicas for no space that is saved.
  bool may_fill(std::uint16_t node, Need need, Lack lack) const {
    const std::uint16_t now = stage(node);
    if (now < (need < Need::Move ? kThrottle : kWarn)) return true;
    if (lack == Lack::Much) return false;
    if (need >= Need::Move) return now < kRefuseExternal;
    return lack == Lack::Nothing || takes_merges(node);
  }
  /// Returns true if merges may still write to the node.
  bool takes_merges(std::uint16_t node) const { return stage(node) < kRefuseAll; }
  std::string describe(std::uint16_t node) const {
    const Node& known = nodes_.at(node);
    if (!known.refusal.empty()) return known.refusal;
    return "storage." + std::to_string(node) + " takes no writes but removes: " + known.reason;
  }

  /// Returns setting and limit of a storage node's reason: "96.0 % used; storage.space_refuse_external_percent is 95,
  /// ...". Both are empty if it names none.
  static ErrorDetails exceeded_in(std::string_view reason) {
    constexpr std::string_view kIs = " is ";
    const std::size_t begin = reason.find("; ");
    const std::size_t is = begin == std::string_view::npos ? begin : reason.find(kIs, begin);
    if (is == std::string_view::npos) return {};
    const std::string_view rest = reason.substr(is + kIs.size());
    return {.node = {},
            .limit = std::string(rest.substr(0, rest.find_first_not_of("0123456789"))),
            .setting = std::string(reason.substr(begin + 2, is - begin - 2))};
  }

 private:
  struct Node {
    std::uint16_t stage = kUnknown;
    std::string reason;     ///< The space in use, the limit, and the setting of the limit.
    std::string refusal;    ///< The node's own error message, newer than `reason`.
    ErrorDetails exceeded;  ///< Setting and limit of what was said last.
  };
  std::map<std::uint16_t, Node> nodes_;
};

}  // namespace fjord::distributor
