#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "acknowledged.h"
#include "fjord/cluster/cluster_view.h"
#include "fjord/common/result.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// What is done to a copy of a cluster to see whether a claim of Fjord is so (I25).
enum class Trial : unsigned {
  Destroy,  ///< Healthy: redundancy - 1 nodes are destroyed, all others restart in any order. They return empty, or an
            ///< operator removes them by force.
  Lose,     ///< In sync again after a node was lost: redundancy - 1 further nodes are lost, and nothing restarts.
  Silence,  ///< Healthy: redundancy - 1 nodes die, and another one is silent for a while.
  Damage,   ///< 0 damaged: a file is damaged and repaired; then its node restarts, and the others of a bucket are lost.
  Files,    ///< In sync: not said of a node whose files are gone. NOT_FOUND: not said of what empty disks have held.
  Stop,     ///< Nodes that may be stopped are not missed; nodes that may not be are missed.
};
inline constexpr unsigned kTrials = 6;
std::string_view to_string(Trial trial);
/// Errors: InvalidArgument if no trial has this name.
Result<Trial> trial_from_string(std::string_view name);

/// Puts claims to the test on copies of a cluster, which itself does not change.
///
/// Each trial returns an empty string if the claim holds, else how it was broken, beginning with "I25: ". A trial that
/// cannot be made returns an empty string and is not counted by done(): for example, if the copy is not in sync within
/// kSteadyWithin because an operator has taken a node out.
/// Lifetime: the cluster and the record outlive it. Threading: the scheduler's, also within one of its events, because
/// a copy has a scheduler of its own.
class ClaimTrial {
 public:
  /// From the start of the last process, or the end of a silence, until everything is served.
  static constexpr Duration kServedWithin = seconds(40);
  static constexpr Duration kSteadyWithin = seconds(60);
  /// Time within which Fjord has to notice what happened to a node.
  static constexpr Duration kNoticedWithin = seconds(5);

  /// `view` is the state in force, and all buckets are in sync there.
  ClaimTrial(const SimCluster& original, const Acknowledged& acknowledged, ClusterView view, std::uint64_t seed)
      : original_(original), acknowledged_(acknowledged), view_(std::move(view)), random_(seed) {}

  std::string run(Trial trial);
  /// True if the last trial came to an answer.
  bool done() const { return done_; }
  /// The last lines of the trace of the copy in which the claim was broken; empty unless the original keeps its trace.
  const std::vector<std::string>& trace() const { return trace_; }

 private:
  std::string destroy();
  std::string lose();
  std::string silence();
  bool may_have_been_passed(const SimCluster& copy, const std::string& silent, const std::set<std::string>& dead);
  std::string damage();
  std::string files();
  std::string empty_disks();
  std::string stop();
  /// Returns why the nodes may not be stopped, empty if they may; nullopt if there was no answer.
  static std::optional<std::string> ask_to_stop(SimCluster& copy, const std::vector<std::string>& nodes);
  std::string why_may_stop(SimCluster& copy, const std::vector<std::string>& nodes);
  std::string why_may_not_stop(SimCluster& copy, const std::vector<std::string>& nodes, const std::string& reasons);

  std::unique_ptr<SimCluster> copy_of(const SimCluster& cluster);
  /// Starts all processes but `absent`, each after a pause of up to `pause_max`.
  void start(SimCluster& copy, const std::set<std::string>& absent, Duration pause_max);
  /// Runs until all distributors say that their buckets are in sync, whatever nodes are away. Returns false if that
  /// does not happen within kSteadyWithin.
  bool run_until_in_sync(SimCluster& copy);
  /// Returns the first thing that a user of the copy misses. `counts`: also if a job counts other documents than those
  /// that the run has put.
  std::string serve(SimCluster& copy, bool counts = true);
  std::string report(const SimCluster& copy, std::string what, const std::string& problem);
  /// Draws that many nodes of which any could be missed: all but one replica of a bucket at most. `spared`: this node
  /// is not among them; empty: any may be.
  std::set<std::string> draw_expendable(const std::string& spared);
  /// Draws one to three nodes, or all of a group.
  std::vector<std::string> draw_to_stop();
  std::vector<std::string> nodes_up() const;
  std::size_t replicas() const { return replicas(view_); }
  static std::size_t replicas(const ClusterView& view);

  const SimCluster& original_;
  const Acknowledged& acknowledged_;
  const ClusterView view_;
  Random random_;
  std::set<std::string> in_sync_;  ///< The storage nodes that were up when run_until_in_sync() returned.
  bool done_ = false;
  std::vector<std::string> trace_;
};

}  // namespace fjord::sim
