#include "outage_checker.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/document/document_id.h"

namespace fjord::sim {
namespace {

/// How a distributor begins the reason of a bucket whose newest replica set it does not have together.
constexpr const char* kReason = "its newest documents may be on";

bool may_serve(NodeState state) { return state != NodeState::Down && state != NodeState::Maintenance; }

}  // namespace

void OutageChecker::see_answer(const std::string& id, const Status& status) {
  if (cluster_ == nullptr || !failure_.empty()) return;
  if (status.code() != StatusCode::Unavailable || status.message().find(kReason) == std::string::npos) {
    // Other transient refusals do not end an outage.
    if (status || status.code() == StatusCode::NotFound) refused_since_.erase(id);
    return;
  }
  const MonotonicTime now = cluster_->scheduler().clock().now();
  const MonotonicTime since = refused_since_.try_emplace(id, now).first->second;
  if (now - since < kOutageMax) return;
  ++looked_into_;
  const Holders holders = live_holders(id);
  if (holders.nodes.empty() || now - holders.since < kOutageMax || may_have_been_served_without(holders)) return;
  failure_ = fmt::format(
      "I25: {} is refused for {} ms although storage nodes {} are up with the newest replica set, and the other "
      "members "
      "({}) were never up without them: {}",
      id, (now - since).count() / 1000, fmt::join(holders.nodes, ", "), fmt::join(holders.members, ", "),
      status.to_string());
}

OutageChecker::Holders OutageChecker::live_holders(const std::string& id) const {
  Holders holders;
  const Result<DocumentId> parsed = DocumentId::parse(id);
  if (!parsed || states_.empty()) return holders;
  const BucketId smallest = bucket_of(parsed->gid(), BucketId::kUsedBitsMax);
  const ClusterState& newest = states_.rbegin()->second;
  for (const std::string& name : cluster_->storage_names()) {
    const NodeId node = *NodeId::parse(name);
    if (!cluster_->is_running(name) || !newest.is_up(node)) continue;
    for (const auto& [bucket, set] : cluster_->sets_of(name)) {
      if (!bucket.contains(smallest) || set.epoch == 0 || set.epoch < holders.epoch) continue;
      if (set.epoch > holders.epoch) holders = {};
      holders.epoch = set.epoch;
      holders.members.insert(set.nodes.begin(), set.nodes.end());
      if (!set.contains(node.index)) continue;
      holders.nodes.insert(node.index);
      holders.since = std::max(holders.since, cluster_->disturbed_at(name));
    }
  }
  return holders;
}

bool OutageChecker::may_have_been_served_without(const Holders& holders) const {
  for (auto at = states_.lower_bound(holders.epoch >> ReplicaSet::kStepBits); at != states_.end(); ++at) {
    const auto serves = [&](std::uint16_t node) { return may_serve(at->second.node(NodeId::storage(node)).state); };
    if (std::any_of(holders.nodes.begin(), holders.nodes.end(), serves)) continue;
    if (std::any_of(holders.members.begin(), holders.members.end(), serves)) return true;
  }
  return false;
}

}  // namespace fjord::sim
