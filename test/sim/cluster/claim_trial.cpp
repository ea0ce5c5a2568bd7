#include "claim_trial.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <utility>

#include "claim_reader.h"

namespace fjord::sim {
namespace {

constexpr std::string_view kTrialNames[kTrials] = {"destroy", "lose", "silence", "damage", "files", "stop"};
constexpr std::size_t kTraceLines = 400;

bool is_up(const SimCluster& cluster) {
  const auto snapshot = cluster.known_snapshot();
  return snapshot != nullptr && snapshot->state().is_cluster_up();
}

/// Returns true if a check refuses because of what passes by itself: a distributor that did not answer in time, a
/// cluster state that has just changed, buckets that are collected after it.
bool may_pass(const std::string& refusals) {
  static constexpr std::string_view kPassing[] = {"does not answer", "is on its way", "speaks of cluster state",
                                                  "not in sync"};
  return std::any_of(std::begin(kPassing), std::end(kPassing),
                     [&](std::string_view reason) { return refusals.find(reason) != std::string::npos; });
}

}  // namespace

std::string_view to_string(Trial trial) { return kTrialNames[static_cast<unsigned>(trial)]; }

Result<Trial> trial_from_string(std::string_view name) {
  const auto* found = std::find(std::begin(kTrialNames), std::end(kTrialNames), name);
  if (found != std::end(kTrialNames)) return static_cast<Trial>(found - std::begin(kTrialNames));
  return Status(StatusCode::InvalidArgument,
                fmt::format("there is no trial '{}'; there are {}", name, fmt::join(kTrialNames, ", ")));
}

std::string ClaimTrial::run(Trial trial) {
  done_ = false;
  switch (trial) {
    case Trial::Destroy:
      return destroy();
    case Trial::Lose:
      return lose();
    case Trial::Silence:
      return silence();
    case Trial::Damage:
      return damage();
    case Trial::Files:
      return random_.chance(0.5) ? empty_disks() : files();
    case Trial::Stop:
      return stop();
  }
  return {};
}

std::unique_ptr<SimCluster> ClaimTrial::copy_of(const SimCluster& cluster) {
  std::unique_ptr<SimCluster> copy = cluster.copy(random_.next());
  copy->scheduler().keep_trace(kTraceLines);
  for (const std::string& name : copy->storage_names()) copy->free_disk(name);
  return copy;
}

void ClaimTrial::start(SimCluster& copy, const std::set<std::string>& absent, Duration pause_max) {
  for (const auto& names : {copy.controller_names(), copy.storage_names(), copy.distributor_names()}) {
    for (const std::string& name : names) {
      if (absent.contains(name)) continue;
      const Duration pause(1 + random_.below(static_cast<std::uint64_t>(pause_max.count())));
      copy.scheduler().outside().post_after(pause, [&copy, name] { copy.restart(name); });
    }
  }
  copy.scheduler().run_for(pause_max);
}

std::vector<std::string> ClaimTrial::nodes_up() const {
  std::vector<std::string> names;
  for (std::uint16_t i = 0; i < view_.state->node_count(NodeType::Storage); ++i) {
    if (view_.is_up(NodeId::storage(i))) names.push_back(NodeId::storage(i).to_string());
  }
  return names;
}

/// Returns how many replicas each bucket has at least when all are in sync: fewer than the redundancy if there are not
/// enough nodes or groups.
std::size_t ClaimTrial::replicas(const ClusterView& view) {
  std::size_t least = view.redundancy();
  for (std::uint64_t i = 0; i < std::uint64_t{1} << view.bits(); ++i) {
    std::size_t up = 0;
    for (const std::uint16_t node : view.ideal_nodes(BucketId(view.bits(), i))) {
      up += view.is_up(NodeId::storage(node)) ? 1 : 0;
    }
    least = std::min(least, up);
  }
  return least;
}

std::set<std::string> ClaimTrial::draw_expendable(const std::string& spared) {
  std::vector<std::string> nodes = nodes_up();
  std::erase(nodes, spared);
  const std::size_t count = replicas() > 0 ? std::min(replicas() - 1, nodes.size()) : 0;
  std::set<std::string> drawn;
  while (drawn.size() < count) drawn.insert(nodes[random_.below(nodes.size())]);
  return drawn;
}

std::string ClaimTrial::serve(SimCluster& copy, bool counts) {
  ClaimReader reader(copy, acknowledged_, random_.fork());
  std::string problem = reader.get_all(kServedWithin);
  if (problem.empty()) problem = reader.visit(kServedWithin);
  const bool by_job = counts && random_.chance(0.25);
  // With fewer nodes than the operator's limit no write is taken, so no job either.
  if (problem.empty() && by_job && is_up(copy)) problem = reader.count_by_job(kServedWithin);
  return problem;
}

std::string ClaimTrial::report(const SimCluster& copy, std::string what, const std::string& problem) {
  done_ = true;
  if (problem.empty()) return {};
  const auto& lines = const_cast<SimCluster&>(copy).scheduler().kept_trace();
  trace_.assign(lines.begin(), lines.end());
  return fmt::format("I25: in state '{}' {}: {}", view_.state->to_string(), what, problem);
}

bool ClaimTrial::run_until_in_sync(SimCluster& copy) {
  const MonotonicTime end = copy.scheduler().clock().now() + kSteadyWithin;
  const std::uint64_t before = view_.version();
  while (copy.scheduler().clock().now() < end) {
    auto answer = std::make_shared<std::optional<bool>>();
    copy.admin().call_any(
        rpc::GetStatus{}, seconds(2), [this, answer, before](const Result<rpc::GetStatusReply>& reply) {
          *answer = reply && reply->status && reply->info.state_version > before;
          if (!**answer) return;
          in_sync_.clear();
          for (const rpc::NodeStatus& node : reply->nodes) {
            if (node.state != "up") continue;
            if (node.node.starts_with("storage.")) in_sync_.insert(node.node);
            const rpc::PollReply& last = node.last;
            const bool is_well = node.answered_us_ago >= 0 && node.answered_us_ago < 1'000'000 &&
                                 last.state_version == reply->info.state_version && last.buckets_out_of_sync == 0 &&
                                 last.buckets_unavailable == 0 && last.buckets_damaged == 0 &&
                                 last.buckets_under_replicated == 0 && last.buckets_collecting == 0;
            *answer = **answer && is_well;
          }
        });
    copy.run_until([&] { return answer->has_value(); }, seconds(5));
    if (*answer && **answer) return true;
    copy.scheduler().run_for(milliseconds(300));
  }
  return false;
}

std::string ClaimTrial::destroy() {
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  const std::set<std::string> destroyed = draw_expendable({});
  std::set<std::string> absent;
  std::string how;
  for (const std::string& name : copy->storage_names()) {
    if (!destroyed.contains(name)) continue;
    copy->wipe(name);
    const bool returns = random_.chance(0.5);
    if (!returns) absent.insert(name);
    how += fmt::format(" {} {},", name, returns ? "returns empty" : "never returns");
  }
  const Duration pause_max = random_.chance(0.5) ? milliseconds(200) : milliseconds(4000);
  start(*copy, absent, pause_max);
  const std::string what = fmt::format("all buckets are in sync, with {} replicas;{} the others restart within {} ms",
                                       replicas(), how, pause_max.count() / 1000);
  return report(*copy, what, serve(*copy));
}

std::string ClaimTrial::lose() {
  if (replicas() < 2) return {};
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  start(*copy, {}, milliseconds(200));
  if (!copy->run_until_steady(kSteadyWithin)) return {};
  const std::vector<std::string> nodes = nodes_up();
  const std::string first = nodes[random_.below(nodes.size())];
  ClusterState after = *view_.state;
  after.set_node_state(*NodeId::parse(first), NodeState::Down);
  // With as many nodes as replicas there is nowhere to repair to.
  if (replicas(ClusterView::make(std::move(after), *view_.distribution)) < replicas()) return {};
  copy->crash(first);
  copy->scheduler().run_for(original_.options().down_after + seconds(2));
  if (!run_until_in_sync(*copy)) return {};
  const std::set<std::string> lost = draw_expendable(first);
  for (const std::string& name : lost) copy->crash(name);
  const std::string what =
      fmt::format("{} was lost and all buckets are in sync again; then {} is lost", first, fmt::join(lost, ", "));
  return report(*copy, what, serve(*copy));
}

/// Returns true if the cluster has called `silent` down while it counted on one of `dead` still: then that one may have
/// taken writes alone, and the cluster cannot know that it had ended before.
bool ClaimTrial::may_have_been_passed(const SimCluster& copy, const std::string& silent,
                                      const std::set<std::string>& dead) {
  const auto snapshot = copy.known_snapshot();
  if (snapshot == nullptr) return true;
  const auto away_since = [&](const std::string& name) {
    const NodeStateInfo& node = snapshot->state().node(*NodeId::parse(name));
    return node.past && !node.past->absences.empty() ? node.past->absences.back().from : 0;
  };
  const std::uint64_t since = away_since(silent);
  return since > view_.version() && std::any_of(dead.begin(), dead.end(), [&](const std::string& name) {
           return away_since(name) > since || away_since(name) == 0;
         });
}

std::string ClaimTrial::silence() {
  if (replicas() < 2) return {};
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  start(*copy, {}, milliseconds(200));
  if (!copy->run_until_steady(kSteadyWithin)) return {};
  const std::vector<std::string> nodes = nodes_up();
  const std::string silent = nodes[random_.below(nodes.size())];
  const std::set<std::string> dead = draw_expendable(silent);
  const Duration before = milliseconds(static_cast<std::int64_t>(random_.below(6000)));
  const Duration length = milliseconds(100 + static_cast<std::int64_t>(random_.below(4900)));
  // The silence begins up to 3 s before the others die, or later.
  const Duration lead = seconds(3);
  copy->scheduler().outside().post_after(lead, [&] {
    for (const std::string& name : dead) copy->crash(name);
  });
  copy->scheduler().run_for(before + Duration(1));
  copy->pause(silent);
  copy->scheduler().run_for(length);
  copy->resume(silent);
  copy->scheduler().run_for(lead);
  if (may_have_been_passed(*copy, silent, dead)) return report(*copy, "", "");
  const std::string what =
      fmt::format("{} ended, {} was silent for {} ms from {} ms after that, and answers", fmt::join(dead, ", "), silent,
                  length.count() / 1000, (before - lead).count() / 1000);
  return report(*copy, what, serve(*copy));
}

std::string ClaimTrial::damage() {
  if (replicas() < 2) return {};
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  start(*copy, {}, milliseconds(200));
  if (!copy->run_until_steady(kSteadyWithin)) return {};
  const std::vector<std::string> nodes = nodes_up();
  const std::string node = nodes[random_.below(nodes.size())];
  const std::string where = copy->damage_slotfile(node, random_);
  if (where.empty()) return {};
  // Users read until damage is found somewhere. Then the cluster repairs it, and says when that is done.
  ClaimReader reader(*copy, acknowledged_, random_.fork());
  const std::uint64_t repaired = copy->repaired_buckets();
  for (int turn = 0; turn < 10 && copy->repaired_buckets() == repaired; ++turn) {
    if (const std::string problem = reader.get_all(kServedWithin); !problem.empty()) {
      return report(*copy, "with damage in " + where, problem);
    }
    copy->scheduler().run_for(milliseconds(500));
  }
  if (copy->repaired_buckets() == repaired) return {};
  if (!copy->run_until_steady(kSteadyWithin)) return report(*copy, "damage in " + where + " is never repaired", "I3");

  const std::unique_ptr<SimCluster> later = copy_of(*copy);
  std::set<std::string> absent = draw_expendable(node);
  for (const std::string& name : absent) later->wipe(name);
  later->restart(node);
  const std::string what = fmt::format("0 damaged, after damage in {} was repaired; {} restarts", where, node);
  if (const std::string bad = later->check_documents_of(node); !bad.empty()) {
    return report(*later, what + " and finds damage", bad);
  }
  if (random_.chance(0.5)) absent.clear();
  start(*later, absent, milliseconds(200));
  return report(*later, fmt::format("{}, and others are lost; away: {}", what, fmt::join(absent, " ")), serve(*later));
}

/// Removes all files of a running node. Once the cluster says that all is in sync, that node has to have everything.
std::string ClaimTrial::files() {
  if (replicas() < 2) return {};
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  start(*copy, {}, milliseconds(200));
  if (!copy->run_until_steady(kSteadyWithin)) return {};
  const std::vector<std::string> nodes = nodes_up();
  const std::string node = nodes[random_.below(nodes.size())];
  copy->remove_files(node);
  ClaimReader reader(*copy, acknowledged_, random_.fork());
  // Writes that the node cannot take are no fault here; they are how a node finds out.
  static_cast<void>(reader.put_everywhere(view_.bits(), seconds(5)));
  copy->scheduler().run_for(kNoticedWithin);
  if (!run_until_in_sync(*copy)) return report(*copy, "", "");
  // With fewer nodes than replicas the cluster says that there are too few replicas.
  in_sync_.erase(node);
  if (in_sync_.size() < replicas()) return report(*copy, "", "");
  const std::unique_ptr<SimCluster> later = copy_of(*copy);
  const std::set<std::string> lost = draw_expendable(node);
  for (const std::string& name : lost) later->wipe(name);
  start(*later, lost, milliseconds(200));
  const std::string what =
      fmt::format("all buckets are in sync {} s after the files of {} were removed under it; all restart but {}",
                  kNoticedWithin.count() / 1'000'000, node, fmt::join(lost, ", "));
  return report(*later, what, serve(*later, false));  // The trial has put documents of its own.
}

/// Starts all storage nodes with empty disks: what they held may exist elsewhere, so no answer may say that it does
/// not.
std::string ClaimTrial::empty_disks() {
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  for (const std::string& name : copy->storage_names()) copy->wipe(name);
  start(*copy, {}, milliseconds(200));
  ClaimReader reader(*copy, acknowledged_, random_.fork());
  return report(*copy, "all storage nodes return with empty disks", reader.get_all(seconds(20), true));
}

std::vector<std::string> ClaimTrial::draw_to_stop() {
  const std::vector<std::string> all = nodes_up();
  std::vector<std::string> nodes;
  const auto groups = view_.distribution->flat_groups();
  if (groups.size() > 1 && random_.chance(0.5)) {
    const auto& group = groups[1 + random_.below(groups.size() - 1)];
    for (std::uint32_t i = group.first_node; i < group.node_end; ++i) {
      const std::string name = NodeId::storage(view_.distribution->flat_nodes()[i].index).to_string();
      if (std::find(all.begin(), all.end(), name) != all.end()) nodes.push_back(name);
    }
    if (!nodes.empty()) return nodes;
  }
  for (std::size_t wanted = std::min<std::size_t>(1 + random_.below(3), all.size()); nodes.size() < wanted;) {
    const std::string& name = all[random_.below(all.size())];
    if (std::find(nodes.begin(), nodes.end(), name) == nodes.end()) nodes.push_back(name);
  }
  return nodes;
}

std::optional<std::string> ClaimTrial::ask_to_stop(SimCluster& copy, const std::vector<std::string>& nodes) {
  rpc::ChangeNodes request;
  request.action = rpc::NodeAction::Stop;
  request.nodes = nodes;
  request.dry_run = true;
  auto answer = std::make_shared<std::optional<Result<rpc::ChangeNodesReply>>>();
  copy.admin().call_any(std::move(request), seconds(5),
                        [answer](Result<rpc::ChangeNodesReply> reply) { *answer = std::move(reply); });
  copy.run_until([&] { return answer->has_value(); }, seconds(10));
  if (!*answer || !**answer || !(**answer)->status) return std::nullopt;
  return fmt::format("{}", fmt::join((**answer)->refusals, "; "));
}

std::string ClaimTrial::stop() {
  const std::unique_ptr<SimCluster> copy = copy_of(original_);
  start(*copy, {}, milliseconds(200));
  if (!copy->run_until_steady(kSteadyWithin)) return {};
  const std::vector<std::string> nodes = draw_to_stop();
  std::optional<std::string> refusals = ask_to_stop(*copy, nodes);
  // What passes by itself is no claim about the nodes.
  for (int turn = 0; turn < 20 && refusals && may_pass(*refusals); ++turn) {
    copy->scheduler().run_for(milliseconds(500));
    refusals = ask_to_stop(*copy, nodes);
  }
  if (!refusals) return {};
  for (const std::string& name : nodes) copy->crash(name);
  const std::string asked = fmt::format("stop-check of {}", fmt::join(nodes, ", "));
  if (refusals->empty()) return report(*copy, asked + " said yes", why_may_stop(*copy, nodes));
  return why_may_not_stop(*copy, nodes, fmt::format("{} said no ({})", asked, *refusals));
}

/// Returns what does not go on without the nodes.
std::string ClaimTrial::why_may_stop(SimCluster& copy, const std::vector<std::string>&) {
  std::string problem = serve(copy);
  if (!problem.empty()) return problem;
  ClaimReader reader(copy, acknowledged_, random_.fork());
  return reader.put_everywhere(view_.bits(), kServedWithin);
}

/// Checks that something does not go on without the nodes. Limits of the operator, which refusals name by their
/// setting, are no statement about the data.
std::string ClaimTrial::why_may_not_stop(SimCluster& copy, const std::vector<std::string>&,
                                         const std::string& reasons) {
  if (reasons.find("controller.") != std::string::npos) return {};
  ClaimReader reader(copy, acknowledged_, random_.fork());
  static constexpr Duration kLongEnough = seconds(20);
  std::string problem = reader.put_everywhere(view_.bits(), kLongEnough);
  if (problem.empty()) problem = reader.get_all(kLongEnough);
  if (problem.empty()) problem = reader.visit(kLongEnough);
  return report(copy, reasons, problem.empty() ? "gets, puts and a visit go on without them" : "");
}

}  // namespace fjord::sim
