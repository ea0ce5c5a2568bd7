#include "drill.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fjord/common/hash.h"

namespace fjord::sim {
namespace {

/// A bound for everything that the cluster does by itself after a fault.
constexpr Duration kRecovers = seconds(60);
/// Time within which buckets are served again after a silence: a poll, a cluster state and the reports of the nodes.
constexpr Duration kServedAgain = seconds(10);

/// Returns what the node's status lacks to be well; empty: nothing.
std::string problem_of(const rpc::NodeStatus& node, const rpc::ClusterInfo& info) {
  const rpc::PollReply& last = node.last;
  const bool answers = node.state == "up" && node.answered_us_ago >= 0 && node.answered_us_ago < 1'000'000;
  const bool is_current = last.state_version == info.state_version && last.schema_version == info.schema_version;
  const bool has_all = last.buckets_out_of_sync == 0 && last.buckets_unavailable == 0 && last.buckets_damaged == 0;
  if (answers && is_current && has_all) return {};
  return fmt::format("{} is {} ({}) with state {} of {}, {} buckets out of sync, {} unavailable, {} damaged; ",
                     node.node, node.state, node.reason, last.state_version, info.state_version,
                     last.buckets_out_of_sync, last.buckets_unavailable, last.buckets_damaged);
}

}  // namespace

std::vector<Fault> draw_drills(const std::set<FaultKind>& kinds, std::size_t first, std::uint64_t seed) {
  Random random(mix64(seed, 0x6472696c6c73));
  std::vector<Fault> drills;
  for (const FaultKind kind : kinds) {
    if (!is_drill(kind)) continue;
    for (std::uint64_t times = 1 + random.below(2); times > 0; --times) {
      Fault drill;
      drill.kind = kind;
      drills.push_back(std::move(drill));
    }
  }
  for (std::size_t i = drills.size(); i > 1; --i) std::swap(drills[i - 1], drills[random.below(i)]);
  for (std::size_t i = 0; i < drills.size(); ++i) drills[i].number = static_cast<unsigned>(first + i);
  return drills;
}

std::string Drills::run() {
  if (drills_.empty()) return {};
  if (std::string problem = wait_until_well("before the drills", kRecovers); !problem.empty()) return problem;
  for (const Fault& drill : drills_) {
    const auto before = exposure_.counts();
    had_effect_ = false;
    cluster_.scheduler().trace("drill " + describe(drill));
    // Its number, so that a drill does the same if others are left out.
    Random own(mix64(seed_, drill.number));
    std::swap(random_, own);
    std::string problem = run(drill);
    std::swap(random_, own);
    if (problem.empty()) problem = wait_until_well("after the drill", kRecovers);
    if (!problem.empty()) return fmt::format("{} (drill {})", problem, describe(drill));
    if (!had_effect_) continue;
    ++exercised_;
    exercised_kinds_.insert(drill.kind);
    for (unsigned i = 1; i <= kInvariants; ++i) {
      if (exposure_.counts()[i] > before[i]) coverage_.add(drill.kind, i);
    }
  }
  return {};
}

std::string Drills::run(const Fault& drill) {
  switch (drill.kind) {
    case FaultKind::DamageRestart:
      return damage_and_restart();
    case FaultKind::Silence:
      return fall_silent();
    case FaultKind::LostFiles:
      return lose_files();
    case FaultKind::GroupMaintenance:
      return maintain_group();
    case FaultKind::FullReturn:
      return return_full();
    case FaultKind::ControlledStop:
      return stop_in_order();
    case FaultKind::ScrubStep:
      return work_at_each_step();
    case FaultKind::ManyBuckets:
      return kill_among_many();
    default:
      return {};
  }
}

void Drills::note_at_end(unsigned invariant) {
  for (const FaultKind kind : exercised_kinds_) coverage_.add(kind, invariant);
}

// --- What the cluster says -------------------------------------------------------------------------------------------

rpc::GetStatusReply Drills::ask() {
  rpc::GetStatusReply status;
  bool answered = false;
  cluster_.admin().call_any(rpc::GetStatus{}, seconds(2), [&](Result<rpc::GetStatusReply> reply) {
    answered = true;
    if (reply && reply->status) status = std::move(*reply);
  });
  cluster_.run_until([&] { return answered; }, seconds(5));
  FJORD_CHECK(answered);
  return status;
}

std::string Drills::wait_until_well(const std::string& when, Duration limit, const std::set<std::string>& away) {
  static constexpr int kTimes = 3;
  const MonotonicTime end = cluster_.scheduler().clock().now() + limit;
  std::string problem;
  for (int times = 0; times < kTimes;) {
    const rpc::GetStatusReply status = ask();
    problem = status.nodes.empty() ? "there is no status" : "";
    for (const rpc::NodeStatus& node : status.nodes) {
      if (!away.contains(node.node)) problem += problem_of(node, status.info);
    }
    times = problem.empty() ? times + 1 : 0;
    if (!problem.empty() && cluster_.scheduler().clock().now() >= end) {
      return fmt::format("I3: the cluster is not well {} s {}: {}", limit.count() / 1'000'000, when, problem);
    }
    run_for(milliseconds(400));
  }
  return {};
}

bool Drills::wait_until_away(const std::string& name) {
  const MonotonicTime end = cluster_.scheduler().clock().now() + kRecovers;
  while (cluster_.scheduler().clock().now() < end) {
    for (const rpc::NodeStatus& node : ask().nodes) {
      if (node.node == name && node.state != "up") return true;
    }
    run_for(milliseconds(100));
  }
  return false;
}

Duration Drills::between(std::int64_t low_ms, std::int64_t high_ms) {
  return milliseconds(low_ms) + Duration(random_.below(static_cast<std::uint64_t>((high_ms - low_ms) * 1000)));
}

Drills::Names Drills::shuffled_nodes() {
  Names names = cluster_.running_storage_names();
  for (std::size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[random_.below(i)]);
  return names;
}

std::size_t Drills::losable(std::size_t nodes) const {
  const unsigned redundancy = cluster_.redundancy();
  return redundancy < 2 ? 0 : std::min<std::size_t>(redundancy, nodes) - 1;
}

// --- A silence beside a dead node ------------------------------------------------------------------------------------

/// A replica whose node was only silent has everything if all others of its bucket have been down since before: no
/// write can have passed it by. So it serves again soon, and does not wait for the dead node.
std::string Drills::fall_silent() {
  const Names names = shuffled_nodes();
  if (names.size() < 2 || losable(names.size()) == 0) return {};
  const std::string& dead = names.front();
  cluster_.crash(dead);
  if (!wait_until_away(dead)) return "I16: nobody noticed that " + dead + " is dead";
  run_for(between(0, 3000));

  Names silent(names.begin() + 1, random_.chance(0.25) ? names.end() : names.begin() + 2);
  if (random_.chance(0.2)) silent.push_back(cluster_.leader());
  const Duration length(static_cast<std::int64_t>(100'000 * std::pow(50.0, random_.uniform())));
  for (const std::string& name : silent) cluster_.pause(name);
  run_for(length);
  for (const std::string& name : silent) cluster_.resume(name);
  had_effect_ = true;
  const std::string when = fmt::format("after {} were silent for {} ms beside {}, which is dead",
                                       fmt::join(silent, ", "), length.count() / 1000, dead);
  std::string problem = wait_until_served(when, kServedAgain, {dead});
  cluster_.restart(dead);
  return problem;
}

/// Nodes with many buckets and disks that take their time still answer in time: they do not count as silent.
std::string Drills::kill_among_many() {
  const Names names = shuffled_nodes();
  if (names.size() < 2 || losable(names.size()) == 0) return {};
  had_effect_ = true;
  const Duration each(20 + random_.below(100));
  std::uint64_t operations = 0;
  for (const std::string& name : names) cluster_.slow_disk(name, each, &operations);
  cluster_.crash(names.front());
  const bool is_noticed = wait_until_away(names.front());
  run_for(between(1000, 5000));
  std::string problem = !is_noticed ? "I16: nobody noticed that " + names.front() + " is dead"
                                    : wait_until_served(fmt::format("after {} died among {} nodes with many buckets",
                                                                    names.front(), names.size()),
                                                        kServedAgain, {names.front()});
  for (const std::string& name : names) cluster_.slow_disk(name, Duration(0), nullptr);
  cluster_.restart(names.front());
  return problem;
}

std::string Drills::wait_until_served(const std::string& when, Duration limit, const std::set<std::string>& away) {
  const MonotonicTime end = cluster_.scheduler().clock().now() + limit;
  while (true) {
    const rpc::GetStatusReply status = ask();
    std::string problem = status.nodes.empty() ? "there is no status" : "";
    for (const rpc::NodeStatus& node : status.nodes) {
      const bool is_current = node.state == "up" && node.last.state_version == status.info.state_version;
      if (away.contains(node.node) || (is_current && node.last.buckets_unavailable == 0)) continue;
      problem += problem_of(node, status.info);
    }
    if (problem.empty()) return {};
    if (cluster_.scheduler().clock().now() >= end) {
      return fmt::format("I16: buckets are not served {} s {}: {}", limit.count() / 1'000'000, when, problem);
    }
    run_for(milliseconds(200));
  }
}

}  // namespace fjord::sim
