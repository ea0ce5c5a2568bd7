#pragma once

#include <set>
#include <string>
#include <vector>

#include "fault.h"
#include "fjord/sim/sim_cluster.h"
#include "operator.h"
#include "recorder.h"

namespace fjord::sim {

/// Faults of several steps, each of which waits for what the cluster says of itself. They come one after the other when
/// the faults of the schedule are over, while the workloads go on: what Fjord promises for exactly these steps can be
/// asked for only if nothing else is broken. docs/simulation.md lists the kinds.
///
/// Lifetime: the cluster outlives the drills; the drills outlive the run of the cluster. Threading: called from outside
/// of the simulated processes; run() runs the scheduler.
class Drills {
 public:
  /// `drills` are faults for which is_drill() holds; `seed` decides their details.
  Drills(SimCluster& cluster, Recorder& recorder, std::vector<Fault> drills, const Exposure& exposure,
         std::uint64_t seed)
      : cluster_(cluster),
        recorder_(recorder),
        drills_(std::move(drills)),
        exposure_(exposure),
        operator_(cluster),
        seed_(seed),
        random_(seed) {}

  bool is_empty() const { return drills_.empty(); }
  /// Carries out all drills. Returns an empty string, or the first promise that was broken.
  std::string run();
  const Coverage& coverage() const { return coverage_; }
  unsigned exercised() const { return exercised_; }
  /// Counts the kinds that were exercised as covering `invariant`, which is checked at the end of the run.
  void note_at_end(unsigned invariant);

 private:
  using Names = std::vector<std::string>;

  std::string run(const Fault& drill);
  std::string damage_and_restart();
  std::string fall_silent();
  std::string lose_files();
  std::string maintain_group();
  std::string return_full();
  std::string stop_in_order();
  std::string work_at_each_step();
  std::string kill_among_many();

  /// Restarts the node and waits until it has verified all that it stores and the cluster is well. Returns what went
  /// wrong.
  std::string restart_and_verify(const std::string& name);
  /// Restarts the nodes after pauses of different lengths, and waits for each until the cluster is well.
  std::string restart_each(const Names& names);
  /// Lets these nodes come back with empty disks, and waits until the cluster is well.
  std::string replace_disks(const Names& names);

  /// Puts new documents and visits them. Returns an empty string, or what failed.
  std::string check_operations(const std::string& when);
  /// Tells the node to stop, starts it after a pause, and waits until the cluster is well.
  std::string stop_and_start(const std::string& name, std::int64_t pause_max_ms);
  /// Lets an operator change these nodes. Returns false if the fleet controller refused.
  bool change_nodes(rpc::NodeAction action, const Names& names);

  /// Waits until the cluster says that all is well, apart from the nodes that are away: nothing is out of sync,
  /// unavailable or damaged, for two polls. Returns an empty string, or what it says after `limit`, with `when`.
  std::string wait_until_well(const std::string& when, Duration limit, const std::set<std::string>& away = {});
  /// Waits until all buckets are served although these nodes are away. Returns an empty string, or what is not.
  std::string wait_until_served(const std::string& when, Duration limit, const std::set<std::string>& away);
  /// Waits until the cluster has noticed that the node is not up.
  bool wait_until_away(const std::string& name);
  rpc::GetStatusReply ask();
  void run_for(Duration duration) { cluster_.scheduler().run_for(duration); }
  Duration between(std::int64_t low_ms, std::int64_t high_ms);
  /// Returns the running storage nodes in a random order.
  Names shuffled_nodes();
  /// Returns the number of nodes that may lose their data at once.
  std::size_t losable(std::size_t nodes) const;

  SimCluster& cluster_;
  Recorder& recorder_;
  std::vector<Fault> drills_;
  const Exposure& exposure_;
  Operator operator_;
  const std::uint64_t seed_;
  Random random_;  ///< The details of the drill that runs.
  Coverage coverage_;
  std::set<FaultKind> exercised_kinds_;
  bool had_effect_ = false;  ///< Whether the drill that runs has changed anything.
  unsigned exercised_ = 0;
  unsigned written_ = 0;  ///< Number of calls of check_operations().
};

/// Draws the drills of a run, with numbers from `first` on: one or two of each of these kinds, in a random order.
std::vector<Fault> draw_drills(const std::set<FaultKind>& kinds, std::size_t first, std::uint64_t seed);

}  // namespace fjord::sim
