#include "recovery.h"

#include <algorithm>

namespace fjord::distributor {
namespace {

bool contains(const std::vector<std::uint16_t>& nodes, std::uint16_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

/// Up without a break since the set was made.
bool is_continuous(const ClusterState& state, std::uint16_t node, const ReplicaSet& set) {
  return state.node({NodeType::Storage, node}).up_since_version <= set.state_version();
}

/// Intact members of `set` that hold an earlier one, of which they are members too. A set is served once all its
/// members have it; so this one never was, and they have all that was acknowledged.
std::vector<const ReplicaReport*> never_told(std::span<const ReplicaReport> reports, const ReplicaSet& set) {
  std::vector<const ReplicaReport*> found;
  for (const ReplicaReport& report : reports) {
    const bool is_earlier = report.set.epoch != 0 && report.set.epoch < set.epoch;
    if (is_earlier && !report.damaged && set.contains(report.node) && report.set.contains(report.node)) {
      found.push_back(&report);
    }
  }
  return found;
}

}  // namespace

RecoveryPlan plan_recovery(std::span<const ReplicaReport> reports, const ClusterState& state, const NodeList& ideal,
                           std::size_t absent) {
  RecoveryPlan plan;
  const ReplicaReport* newest = nullptr;
  for (const ReplicaReport& report : reports) {
    plan.max_timestamp_us = std::max(plan.max_timestamp_us, report.info.max_timestamp_us);
    if (newest == nullptr || report.set.epoch > newest->set.epoch) newest = &report;
  }
  const ReplicaSet& set = newest->set;
  plan.epoch = set.epoch;

  std::vector<const ReplicaReport*> holders;
  bool someone_continuous = false;
  bool all_reported = set.epoch != 0;
  for (std::uint16_t node : set.nodes) {
    auto report = std::find_if(reports.begin(), reports.end(), [&](const ReplicaReport& r) { return r.node == node; });
    all_reported = all_reported && report != reports.end();
    if (report == reports.end() || report->set.epoch != set.epoch) continue;
    holders.push_back(&*report);
    someone_continuous = someone_continuous || is_continuous(state, node, set);
  }
  if (!all_reported && !someone_continuous && absent > 0) {
    plan.reason = "its newest documents may be on a storage node that is down";
    return plan;
  }
  if (holders.empty()) {
    // Every node is up and the newest set has no holder left: what is there is all there is.
    for (const ReplicaReport& report : reports) {
      if (report.set.epoch == set.epoch) holders.push_back(&report);
    }
  }
  plan.available = true;
  const bool all_damaged =
      std::all_of(holders.begin(), holders.end(), [](const ReplicaReport* r) { return r->damaged; });
  for (const ReplicaReport* unaware : never_told(reports, set)) {
    // One that was away may have forgotten the newest set, which was served then; but it is better than what is
    // damaged.
    if (!all_damaged && !is_continuous(state, unaware->node, unaware->set)) continue;
    holders.push_back(unaware);
    plan.install = true;
    plan.differ = plan.differ || all_damaged;
  }

  auto is_holder = [&](std::uint16_t node) {
    return std::any_of(holders.begin(), holders.end(), [&](const ReplicaReport* r) { return r->node == node; });
  };
  for (std::uint16_t node : ideal) (is_holder(node) ? plan.members : plan.filling).push_back(node);
  for (const ReplicaReport* holder : holders) {
    if (!contains(plan.members, holder->node)) plan.members.push_back(holder->node);
    plan.differ = plan.differ || holder->info.checksum != holders.front()->info.checksum ||
                  holder->info.entries != holders.front()->info.entries;
    plan.install = plan.install || !is_continuous(state, holder->node, set);
  }
  for (const ReplicaReport& report : reports) {
    if (!contains(plan.members, report.node) && !contains(plan.filling, report.node)) plan.stale.push_back(report.node);
  }
  plan.install = plan.install || plan.members.size() != set.nodes.size() || !plan.filling.empty();
  return plan;
}

}  // namespace fjord::distributor
