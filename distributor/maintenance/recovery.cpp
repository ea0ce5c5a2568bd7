#include "recovery.h"

#include <algorithm>
#include <optional>

namespace fjord::distributor {
namespace {

/// Returns true if the node has been available without a break since the set was made.
bool is_continuous(const ClusterState& state, std::uint16_t node, const ReplicaSet& set) {
  return state.node({NodeType::Storage, node}).up_since_version <= set.state_version();
}

bool is_available(const NodeStateInfo& node) { return node.state == NodeState::Up || node.state == NodeState::Retired; }

/// Returns true if the node cannot know of a replica set that was made during `gap` and that it has not reported: it
/// was away throughout, or has come back meanwhile as a process that still lives and was asked.
bool has_told_all(const NodeStateInfo& node, const Absence& gap) {
  const std::uint64_t untold_until =
      is_available(node) ? std::min(gap.until, std::max(gap.from, node.alive_since())) : gap.until;
  if (untold_until == gap.from) return true;
  return node.past && std::any_of(node.past->absences.begin(), node.past->absences.end(), [&](const Absence& away) {
           return away.from <= gap.from && (away.until == 0 || away.until >= untold_until);
         });
}

/// Returns the absences of a node since the set was made; none if its process has not lived since then.
std::optional<std::vector<Absence>> absences_since(const NodeStateInfo& node, const ReplicaSet& set) {
  if (node.up_since_version <= set.state_version()) return std::vector<Absence>();
  if (node.alive_since() > set.state_version() || !node.past) return std::nullopt;
  std::vector<Absence> absences;
  for (const Absence& away : node.past->absences) {
    if (away.until == 0) return std::nullopt;
    if (away.until > set.state_version()) absences.push_back(away);
  }
  return absences;
}

/// Returns when both nodes were away at once.
std::vector<Absence> overlaps(const std::vector<Absence>& one, const std::vector<Absence>& other) {
  std::vector<Absence> both;
  for (const Absence& a : one) {
    for (const Absence& b : other) {
      const Absence overlap{std::max(a.from, b.from), std::min(a.until, b.until)};
      if (overlap.from < overlap.until) both.push_back(overlap);
    }
  }
  return both;
}

/// Returns true if no replica set was in force after `set`, which `holders` report. A set that was made under a state
/// in which one of them was available would be known to it. One that was made while all were away would be known to a
/// node that was available then. So it is enough that each of these nodes still lives and has reported nothing newer
/// (docs/design/0001-first-architecture.md, "A member that was silent").
bool is_newest_in_force(const std::vector<const ReplicaReport*>& holders, const ClusterState& state,
                        const ReplicaSet& set) {
  std::optional<std::vector<Absence>> gaps;
  NodeList witnesses;
  for (const ReplicaReport* holder : holders) {
    const auto absences = absences_since(state.node(NodeId::storage(holder->node)), set);
    if (!absences) continue;
    gaps = gaps ? overlaps(*gaps, *absences) : *absences;
    witnesses.push_back(holder->node);
  }
  if (!gaps) return false;
  std::uint16_t count = state.node_count(NodeType::Storage);
  for (const std::uint16_t node : set.nodes) count = std::max<std::uint16_t>(count, node + 1);
  return std::all_of(gaps->begin(), gaps->end(), [&](const Absence& gap) {
    for (std::uint16_t i = 0; i < count; ++i) {
      if (!witnesses.contains(i) && !has_told_all(state.node(NodeId::storage(i)), gap)) return false;
    }
    return true;
  });
}

const ReplicaReport* find_report(std::span<const ReplicaReport> reports, std::uint16_t node) {
  auto found = std::find_if(reports.begin(), reports.end(), [&](const ReplicaReport& r) { return r.node == node; });
  return found == reports.end() ? nullptr : &*found;
}

/// Returns the reports of the members of `set` that have received it.
std::vector<const ReplicaReport*> recipients(std::span<const ReplicaReport> reports, const ReplicaSet& set) {
  std::vector<const ReplicaReport*> found;
  for (std::uint16_t node : set.nodes) {
    const ReplicaReport* report = find_report(reports, node);
    if (report != nullptr && report->set.epoch == set.epoch) found.push_back(report);
  }
  return found;
}

/// Returns true if the node has come back without the data that it had. It may still open its folder, or be retired.
bool is_back_empty(const ClusterState& state, std::uint16_t node) {
  const NodeStateInfo& info = state.node(NodeId::storage(node));
  return state.has_lost_data(node) && (is_available(info) || info.state == NodeState::Initializing);
}

/// Returns true if all members of `set` that have not reported came back without their data, and a holder of the set
/// has been available since it was made. Without that holder no newer set can have come into force, and nothing is
/// gained by waiting for the others: they hold nothing any more.
bool is_only_lost_missing(std::span<const ReplicaReport> reports, const ClusterState& state, const ReplicaSet& set,
                          const std::vector<const ReplicaReport*>& holders) {
  const bool only_lost = std::all_of(set.nodes.begin(), set.nodes.end(), [&](std::uint16_t node) {
    return find_report(reports, node) != nullptr || is_back_empty(state, node);
  });
  return only_lost && std::any_of(holders.begin(), holders.end(), [&](const ReplicaReport* holder) {
           return state.node(NodeId::storage(holder->node)).available_since() <= set.state_version();
         });
}

/// Returns the reports of intact members of `set` that still have an earlier set, which names them as members. A set
/// takes writes only once all of its members have it. As these members lack `set`, it never took a write, and they have
/// every acknowledged write.
std::vector<const ReplicaReport*> never_received(std::span<const ReplicaReport> reports, const ReplicaSet& set) {
  std::vector<const ReplicaReport*> found;
  for (const ReplicaReport& report : reports) {
    const bool is_earlier = report.set.epoch != 0 && report.set.epoch < set.epoch;
    if (is_earlier && !report.damaged && set.contains(report.node) && report.set.contains(report.node)) {
      found.push_back(&report);
    }
  }
  return found;
}

/// Returns true if a member that has not received `set` was there all the time since its own, earlier set. It would
/// have been told of each later set before that was served, so none was, and it has every acknowledged write.
bool was_never_served(std::span<const ReplicaReport> reports, const ClusterState& state, const ReplicaSet& set) {
  const auto unaware = never_received(reports, set);
  return std::any_of(unaware.begin(), unaware.end(),
                     [&](const ReplicaReport* report) { return is_continuous(state, report->node, report->set); });
}

/// Returns the reports of intact replicas that were catching up and would have become members by `set`. They have not
/// received it, although they were up without a break since it was made. So `set` was never served, and these replicas
/// have every acknowledged write.
std::vector<const ReplicaReport*> about_to_join(std::span<const ReplicaReport> reports, const ClusterState& state,
                                                const ReplicaSet& set) {
  std::vector<const ReplicaReport*> found;
  for (const ReplicaReport& report : reports) {
    const bool is_named = set.epoch != 0 && set.contains(report.node);
    if (is_named && report.set.epoch == 0 && !report.damaged && is_continuous(state, report.node, set)) {
      found.push_back(&report);
    }
  }
  return found;
}

/// Returns true if the replica has received `set`, which names it, and has no entry.
bool is_empty_under(const ReplicaReport& report, const ReplicaSet& set) {
  return report.set.epoch == set.epoch && set.contains(report.node) && report.info.entries == 0;
}

/// Returns true if the bucket was about to be created: all reported replicas are empty and of its first set, and a node
/// of that set was up all the time and has no replica. So nothing was ever written to the bucket.
bool is_unborn(std::span<const ReplicaReport> reports, const ClusterState& state, const ReplicaSet& set) {
  // A bucket that was made on all of its nodes can only lack a replica because its files are gone.
  if (!is_birth(set)) return false;
  const bool is_first_set = std::all_of(reports.begin(), reports.end(),
                                        [&](const ReplicaReport& report) { return is_empty_under(report, set); });
  return is_first_set && std::any_of(set.nodes.begin(), set.nodes.end(), [&](std::uint16_t node) {
           return state.is_up({NodeType::Storage, node}) && is_continuous(state, node, set) &&
                  find_report(reports, node) == nullptr;
         });
}

/// Returns true if all reported replicas have received the newest set and were never written to. Every acknowledged
/// write is on all members, so there was none.
bool was_never_written(std::span<const ReplicaReport> reports, const ReplicaSet& set) {
  return std::all_of(reports.begin(), reports.end(), [&](const ReplicaReport& report) {
    return is_empty_under(report, set) && !report.damaged && report.info.max_timestamp_us == 0;
  });
}

/// Plans the creation of an unborn bucket. As nothing was ever written to it, nodes without a replica count as
/// complete.
RecoveryPlan plan_birth(std::span<const ReplicaReport> reports, const NodeList& ideal, RecoveryPlan plan) {
  plan.available = plan.unborn = plan.install = true;
  plan.members = ideal.to_vector();
  for (const ReplicaReport& report : reports) {
    if (!contains(plan.members, report.node)) plan.obsolete.push_back(report.node);
    plan.differ = plan.differ || report.damaged;
  }
  return plan;
}

/// Makes the holders members, ideal nodes first; the other ideal nodes have to be filled.
void split_by_ideal(RecoveryPlan& plan, const std::vector<const ReplicaReport*>& holders, const NodeList& ideal) {
  const auto is_holder = [&](std::uint16_t node) {
    return std::any_of(holders.begin(), holders.end(), [&](const ReplicaReport* r) { return r->node == node; });
  };
  for (std::uint16_t node : ideal) (is_holder(node) ? plan.members : plan.catching_up).push_back(node);
  for (const ReplicaReport* holder : holders) {
    if (!contains(plan.members, holder->node)) plan.members.push_back(holder->node);
  }
}

/// Adds the replicas that count as holders although they have not received `set`.
void add_holders_without_set(RecoveryPlan& plan, std::vector<const ReplicaReport*>& holders,
                             std::span<const ReplicaReport> reports, const ClusterState& state, const ReplicaSet& set) {
  const bool all_damaged =
      std::all_of(holders.begin(), holders.end(), [](const ReplicaReport* r) { return r->damaged; });
  for (const ReplicaReport* unaware : never_received(reports, set)) {
    // A node that was away may have missed the newest set, which was served in that case. Its replica is still better
    // than damaged replicas.
    if (!all_damaged && !is_continuous(state, unaware->node, unaware->set)) continue;
    holders.push_back(unaware);
    plan.install = true;
    plan.differ = plan.differ || all_damaged;
  }

  if (all_damaged) {
    for (const ReplicaReport* joiner : about_to_join(reports, state, set)) {
      holders.push_back(joiner);
      plan.install = plan.differ = true;
    }
  }
}

/// Returns names and states of the members of `set` that have not reported; the bucket waits for them.
std::string names_of_absent(std::span<const ReplicaReport> reports, const ClusterState& state, const ReplicaSet& set) {
  std::string names;
  for (const std::uint16_t node : set.nodes) {
    if (find_report(reports, node) != nullptr) continue;
    const NodeId id = NodeId::storage(node);
    const bool is_lost = state.has_lost_data(node);
    names += (names.empty() ? "" : ", ") + id.to_string() + " (" +
             (is_lost ? "came back without its data" : std::string(to_string(state.node(id).state))) + ")";
  }
  return names.empty() ? "a storage node that is down" : names;
}

}  // namespace

RecoveryPlan plan_recovery(std::span<const ReplicaReport> reports, const ClusterState& state, const NodeList& ideal,
                           std::size_t absent, bool has_spare) {
  RecoveryPlan plan;
  const ReplicaReport* newest = nullptr;
  for (const ReplicaReport& report : reports) {
    plan.max_timestamp_us = std::max(plan.max_timestamp_us, report.info.max_timestamp_us);
    if (newest == nullptr || report.set.epoch > newest->set.epoch) newest = &report;
  }
  const ReplicaSet& set = newest->set;
  plan.newest = set;

  if (is_unborn(reports, state, set)) return plan_birth(reports, ideal, std::move(plan));
  std::vector<const ReplicaReport*> holders = recipients(reports, set);
  const bool is_newest = is_newest_in_force(holders, state, set);
  const bool all_reported = set.epoch != 0 && std::all_of(set.nodes.begin(), set.nodes.end(), [&](std::uint16_t node) {
                              return find_report(reports, node) != nullptr;
                            });
  const bool has_last =
      is_newest || was_never_served(reports, state, set) || is_only_lost_missing(reports, state, set, holders);
  if (!all_reported && !has_last && absent > 0) {
    plan.reason = "its newest documents may be on " + names_of_absent(reports, state, set);
    return plan;
  }
  // A member that does not report may never have had the bucket if the bucket was still being made. If the others
  // served it alone, and were away later, no node would report it.
  if (has_spare && !all_reported && is_newest && is_birth(set) && was_never_written(reports, set)) {
    return plan_birth(reports, ideal, std::move(plan));
  }
  if (holders.empty()) {
    // Every node is up, but no member of the newest set has received it: the replicas with its epoch are all there is.
    for (const ReplicaReport& report : reports) {
      if (report.set.epoch == set.epoch) holders.push_back(&report);
    }
  }
  plan.available = true;
  add_holders_without_set(plan, holders, reports, state, set);
  split_by_ideal(plan, holders, ideal);
  for (const ReplicaReport* holder : holders) {
    plan.differ = plan.differ || holder->info.checksum != holders.front()->info.checksum ||
                  holder->info.entries != holders.front()->info.entries;
    plan.install = plan.install || !is_continuous(state, holder->node, set);
  }
  for (const ReplicaReport& report : reports) {
    if (!contains(plan.members, report.node) && !contains(plan.catching_up, report.node))
      plan.obsolete.push_back(report.node);
  }
  // All members have the bucket that was being made; a set with a higher step says so for good.
  const bool is_just_born = is_birth(set) && was_never_written(reports, set);
  plan.install = plan.install || is_just_born || plan.members.size() != set.nodes.size() || !plan.catching_up.empty();
  return plan;
}

Lack lack_of(const ReplicaReport& report, std::span<const ReplicaReport> reports, const NodeIndexes& members) {
  if (report.damaged || report.set.epoch == 0) return Lack::Much;
  bool is_equal = true;
  std::uint64_t bytes = 0;
  for (const ReplicaReport& other : reports) {
    if (!contains(members, other.node)) continue;
    is_equal = is_equal && report.info.same_content(other.info);
    bytes = std::max(bytes, other.info.bytes);
  }
  if (is_equal) return Lack::Nothing;
  return bytes <= report.info.bytes + kLittleBytes ? Lack::Little : Lack::Much;
}

}  // namespace fjord::distributor
