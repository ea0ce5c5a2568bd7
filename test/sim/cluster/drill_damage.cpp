// Drills in which nodes lose what they had stored.

#include <fmt/format.h>

#include "drill.h"

namespace fjord::sim {
namespace {

constexpr Duration kRecovers = seconds(60);

}  // namespace

// --- Damage, repair, restarts, the death of other copies -------------------------------------------------------------

/// What is said to be repaired is on the disk: it is there after restarts, and without the copy that it came from.
std::string Drills::damage_and_restart() {
  const Names names = shuffled_nodes();
  const std::size_t losable_nodes = losable(names.size());
  if (losable_nodes == 0) return {};
  const std::string& victim = names.front();
  if (random_.chance(0.7)) cluster_.checkpoint(victim);
  for (std::uint64_t times = 1 + random_.below(3); times > 0; --times) {
    const auto kind = static_cast<Destruction>(random_.below(4));
    had_effect_ = cluster_.destroy_part(victim, kind, random_) || had_effect_;
  }
  if (!had_effect_) return {};
  if (random_.chance(0.3)) {
    cluster_.read_everything(victim);
    run_for(between(0, 3000));
  }
  // The files are verified as a whole, so that all damage is known, and repaired.
  if (std::string problem = restart_and_verify(victim); !problem.empty()) return problem;
  if (std::string problem = restart_and_verify(victim); !problem.empty()) return problem;
  if (const std::uint64_t damaged = cluster_.damaged_buckets(victim); damaged > 0) {
    return fmt::format("I13: {} finds {} damaged buckets after a restart, which were said to be repaired", victim,
                       damaged);
  }
  Names restarted = shuffled_nodes();
  restarted.resize(random_.below(std::min<std::size_t>(restarted.size(), 4) + 1));
  if (std::string problem = restart_each(restarted); !problem.empty()) return problem;
  return replace_disks(Names(names.begin() + 1, names.begin() + 1 + static_cast<std::ptrdiff_t>(losable_nodes)));
}

std::string Drills::restart_and_verify(const std::string& name) {
  cluster_.crash(name);
  run_for(between(50, 800));
  cluster_.restart(name);
  if (!cluster_.run_until([&] { return cluster_.has_scrubbed(name); }, kRecovers)) {
    return fmt::format("I13: {} has not verified what it stores {} s after a restart", name,
                       kRecovers.count() / 1'000'000);
  }
  return wait_until_well(fmt::format("after the restart of {}, which was damaged before", name), kRecovers);
}

std::string Drills::restart_each(const Names& names) {
  for (const std::string& name : names) {
    cluster_.crash(name);
    run_for(between(50, 3000));
    cluster_.restart(name);
    if (std::string problem = wait_until_well("after the restart of " + name, kRecovers); !problem.empty())
      return problem;
  }
  return {};
}

std::string Drills::replace_disks(const Names& names) {
  for (const std::string& name : names) cluster_.wipe(name);
  run_for(between(50, 4000));
  for (const std::string& name : names) cluster_.restart(name);
  return wait_until_well("after other copies were lost", kRecovers);
}

/// No background work of a storage node disturbs a repair, whenever it comes.
std::string Drills::work_at_each_step() {
  recorder_.on_repair([this](const std::string& name) {
    const std::uint64_t dice = random_.below(4);
    if (dice == 0) cluster_.checkpoint(name);
    if (dice < 3) cluster_.work_in_background(name, 1 + static_cast<unsigned>(random_.below(40)));
  });
  std::string problem = damage_and_restart();
  recorder_.on_repair({});
  return problem;
}

// --- Files that vanish -----------------------------------------------------------------------------------------------

/// No more nodes lose files than may, so others have all that they had.
std::string Drills::lose_files() {
  const Names names = shuffled_nodes();
  const std::size_t losable_nodes = losable(names.size());
  if (losable_nodes == 0) return {};
  const Names losers(names.begin(), names.begin() + 1 + static_cast<std::ptrdiff_t>(random_.below(losable_nodes)));
  for (const std::string& name : losers) {
    const bool is_running = random_.chance(0.5);
    had_effect_ = true;
    if (!is_running && random_.chance(0.4)) {
      cluster_.mix_up(name, names.back());
      continue;
    }
    if (!is_running) cluster_.crash(name);
    cluster_.lose_files(name, static_cast<LostPart>(random_.below(4)), random_);
  }
  run_for(between(100, 5000));
  for (const std::string& name : losers) {
    cluster_.crash(name);
    cluster_.restart(name);
  }
  std::string problem = wait_until_well("after files were lost", kRecovers / 3);
  if (problem.empty()) return {};
  // A node may refuse files that are not its own until an operator has taken them away.
  return replace_disks(losers);
}

}  // namespace fjord::sim
