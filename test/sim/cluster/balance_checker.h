#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "fjord/cluster/cluster_view.h"
#include "fjord/sim/sim_cluster.h"

namespace fjord::sim {

/// Checks balancing by load from what processes say to each other.
///
/// I20: each cluster state has the whole table of overrides that some step of the balancer left, a step follows the
/// state that it was made for, and a revert restores the exact table before the step. I22: the limits of the bytes of a
/// step, of rows, of how often a bucket moves, and of the states of nodes. I23: the loads of buckets add up to that of
/// their node, and the controller has counted all that the nodes have.
///
/// Lifetime: the cluster outlives the checker. Threading: the scheduler's.
class BalanceChecker {
 public:
  /// Asks the fleet controller for its steps and loads each second until stop(). `bytes_part` is the greatest value of
  /// balancer.bytes_part in the run.
  void watch(SimCluster& cluster, double bytes_part);
  void stop() { stopped_ = true; }
  bool is_watching() const { return cluster_ != nullptr; }
  void see_state(std::uint64_t version, const std::string& state, const std::string& distribution);
  void see_loads(const std::string& from, const rpc::GetLoadsReply& reply);
  void see_answer(const rpc::BalanceReply& reply);
  /// Asks for the steps a last time and checks. Returns an empty string, or how an invariant was broken. Does nothing
  /// if watch() was not called.
  std::string end();
  std::size_t steps() const { return steps_.size(); }
  std::size_t moves() const;
  std::size_t loads_seen() const { return loads_seen_; }

 private:
  /// A row is a bucket and two numbers. Elsewhere: the nodes that a replica left and went to. Reads: node and permille.
  enum class Kind { Elsewhere, Reads };
  using Row = std::tuple<std::uint64_t, Kind, std::uint32_t, std::uint32_t>;
  using Table = std::set<Row>;
  struct Tables {
    Table before;
    Table after;
  };

  void ask();
  /// `then` gets false if no controller has answered.
  void ask_history(std::function<void(bool is_answered)> then);
  std::string check() const;
  void keep(std::string failure);
  static Table table_of(const ClusterState& state);
  /// The part of the table that the state may have: no read shares unless all nodes know them.
  static Table visible_in(const ClusterState& state, Table table);
  static std::string replay(const rpc::BalanceStep& step, Table& table);
  /// Replays the steps. Fills `tables` by the step's id; steps behind a gap have none.
  std::string replay(std::map<std::uint64_t, Tables>& tables) const;
  /// Returns true if a state after that version, and up to the one that the step was made on, had another number of
  /// bits than the step.
  bool had_other_bits(std::uint64_t after, const rpc::BalanceStep& step) const;
  bool may_be_of_unseen_step(std::uint64_t version) const;
  std::string check_states(const std::map<std::uint64_t, Tables>& tables) const;
  std::string check_rules() const;

  SimCluster* cluster_ = nullptr;
  bool stopped_ = false;
  bool is_history_lost_ = false;
  double bytes_part_ = 1;
  std::map<std::uint64_t, ClusterView> states_;
  std::map<std::uint64_t, rpc::BalanceStep> steps_;
  /// By name and incarnation of a node: the operations that it had counted in its answers.
  std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint64_t>> counted_;
  std::size_t loads_seen_ = 0;
  std::string failure_;
};

}  // namespace fjord::sim
