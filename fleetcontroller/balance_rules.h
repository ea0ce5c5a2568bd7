#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster_record.h"
#include "fjord/balancer/algorithm.h"
#include "fjord/balancer/plan.h"
#include "stop_check.h"

/// The guard rails of balancing by load. Pure functions and values.
namespace fjord::fleetcontroller {

inline constexpr double kBalanceBegin = 1.10;    ///< Moving begins when the imbalance is at least this.
inline constexpr unsigned kBalanceRounds = 2;    ///< Successive rounds with that imbalance, before moving begins.
inline constexpr double kBalanceAtOnce = 1.30;   ///< Moving begins in the first round with this: it is no chance.
inline constexpr double kBalanceStop = 1.03;     ///< Moving ends when the imbalance is at most this.
inline constexpr double kBalanceGainMin = 0.02;  ///< A step that lowers the imbalance by less is not made.
inline constexpr auto kBalanceCoolDown = balancer::kCoolDownRounds;  ///< Rounds after a move in which a bucket rests.
inline constexpr auto kBalanceNotBack = balancer::kNotBackRounds;    ///< Rounds in which it is not moved back.
inline constexpr std::size_t kBalanceRowsMax = 4096;  ///< Largest number of rows of the table of overrides.
inline constexpr double kBalanceWorse = 1.05;         ///< In a bad round the imbalance exceeds the old one times this.
inline constexpr unsigned kBalanceWorseRounds = 3;    ///< After this many bad rounds the last step is taken back.
inline constexpr unsigned kBalanceBitsMax = 16;       ///< With more distribution bits loads are not counted by bucket.

/// Decides when moving begins and ends.
class BalanceTrigger {
 public:
  /// Notes the imbalance of a round.
  void note(double imbalance);
  /// A round without an imbalance: rounds before it do not count.
  void interrupt() { high_rounds_ = 0; }
  bool is_on() const { return is_on_; }

 private:
  unsigned high_rounds_ = 0;
  bool is_on_ = false;
};

/// Watches whether the imbalance grows after a step.
class BalanceWatch {
 public:
  void begin(std::uint64_t step, double imbalance_before);
  void end() { step_ = worse_rounds_ = 0; }
  /// Notes the imbalance of a round in which all moves of the step are done. Returns the step if it is to be taken
  /// back; 0: it is not. The watch ends with the first round that is not worse, or with the step.
  std::uint64_t note(double imbalance);
  /// Returns true while the rounds since the step were all worse: the next step waits.
  bool is_worse() const { return worse_rounds_ > 0; }

 private:
  std::uint64_t step_ = 0;
  double before_ = 0;
  unsigned worse_rounds_ = 0;
};

/// The last change of each bucket, for the rounds in which it rests.
class BalanceMoves {
 public:
  static constexpr std::uint16_t kNoNode = 0xffff;
  struct Last {
    std::uint64_t round = 0;       ///< The last round in which a replica or reads moved.
    std::uint16_t from = kNoNode;  ///< The node that the last moved replica came from.
    std::uint16_t to = kNoNode;
  };
  /// Takes in the steps that it does not know yet. They count as made in `round`, so after a change of the leader
  /// buckets rest longer and not shorter.
  void update(const std::vector<BalanceStep>& steps, std::uint64_t round);
  void clear();
  /// Null if the bucket was not moved lately.
  const Last* last_of(std::uint64_t bucket) const;
  bool rests(std::uint64_t bucket, std::uint64_t round) const;

 private:
  std::map<std::uint64_t, Last> last_;
  std::uint64_t newest_step_ = 0;
};

/// Returns the reasons why nothing may be moved now, one line each; empty: moves are allowed. Nothing is moved while a
/// node or replica is missing, the cluster changes, or data movement is paused.
std::vector<std::string> why_not_balance(const ClusterFacts& facts, bool is_paused);

struct CheckedMoves {
  std::vector<BalancedReplica> moves;
  std::vector<std::string> left_out;
};

/// Returns those of `moves` that the rules allow. A bucket does not move if it rests or has moved in this step already.
/// It does not go back where it came from, unless the node that it leaves is gone, and not onto a node that accepts
/// nothing. All moves together stay within the model's step_bytes_max.
CheckedMoves check_moves(std::span<const BalancedReplica> moves, const balancer::BalanceModel& model,
                         const BalanceMoves& last);

/// Returns the replicas and reads that a plan moves, with the bytes of the model. Several moves of one slice are one
/// for each of its buckets.
std::vector<BalancedReplica> replicas_of(const balancer::Plan& plan, const balancer::BalanceModel& model);

/// Returns the imbalance of the model after the moves. Ignores moves of buckets, and onto nodes, that the model does
/// not have: a step that is taken back can be older than the loads, or its nodes may be gone.
double imbalance_after(const balancer::BalanceModel& model, std::span<const BalancedReplica> moves);

/// Returns a ratio in thousandths.
std::uint32_t permille(double ratio);

}  // namespace fjord::fleetcontroller
