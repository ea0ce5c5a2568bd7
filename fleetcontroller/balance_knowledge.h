#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "balance_model.h"
#include "balance_steps.h"
#include "fjord/balancer/algorithm.h"
#include "live_config.h"

namespace fjord::fleetcontroller {

/// What the balancer knows after a round, for plans and answers.
struct BalanceRound {
  std::uint64_t number = 0;
  MonotonicTime ended_at;
  LoadMeasure measure = LoadMeasure::Work;
  /// Absent: the loads of a node are not known.
  std::optional<balancer::BalanceModel> model;
  double imbalance = 1.0;
  std::vector<std::string> waits_for;  ///< Why nothing may be moved.
};

/// Bucket and the node that a replica or reads leave.
using BalanceReasonKey = std::pair<std::uint64_t, std::uint16_t>;

/// A plan with the table that it leads to.
struct BalanceProposal {
  std::string algorithm;
  std::uint64_t state_version = 0;
  std::vector<BalancedReplica> moves;
  OverrideTable table;
  std::vector<std::string> left_out;
  bool is_initial = false;                                   ///< Levels the bytes of a sample.
  std::map<BalanceReasonKey, balancer::MoveReason> reasons;  ///< The algorithm's reasons for moves.
  double before = 1.0;  ///< Imbalance by the loads of the round, before and after the moves.
  double after = 1.0;
  double expected_before = 1.0;  ///< Imbalance by the loads that the algorithm expects when all moves are done.
  double expected_after = 1.0;

  /// Returns true if the loads that the algorithm expects say more for the step than those of the round.
  bool is_by_forecast() const { return expected_before - expected_after > before - after; }
  /// Returns by how much the step lowers the imbalance, by the loads of the round or by those expected, whichever is
  /// more.
  double gain() const { return std::max(before - after, expected_before - expected_after); }
  /// Returns true if the gain is large enough. A step that lowers the expected imbalance alone must not bring the
  /// imbalance of the round to where moving begins: expectations can be wrong.
  bool is_worth_it() const {
    return !moves.empty() && gain() >= kBalanceGainMin && after <= std::max(before, kBalanceBegin);
  }
};

/// What the balancer of a leader knows. A new leader begins with nothing.
struct BalanceKnowledge {
  BalanceLoads loads;
  BalancePlaces places;
  BalanceMoves last_moves;
  BalanceRound round;
  BalanceTrigger trigger;
  const balancer::BalancingAlgorithm* remembered_for = nullptr;  ///< The algorithm that `memory` belongs to.
  balancer::Memory memory;
  std::optional<BalanceProposal> proposal;  ///< The plan made in the last round.
};

/// Why nothing can be planned or carried out until the next round.
inline constexpr const char* kLoadsNotKnownYet =
    "the loads under this cluster state are not known yet; wait for a round";

/// Plans a step and applies the guard rails to it. `memory` is the algorithm's; it is changed as by a step that moves
/// nothing. Without a usable node the proposal is empty and says so.
BalanceProposal propose(const BalanceKnowledge& known, const balancer::BalanceModel& model,
                        const balancer::BalancingAlgorithm& algorithm, balancer::Memory& memory);

/// Returns the model with the bytes of a sample in place of bytes and loads. Its steps may move any number of them.
balancer::BalanceModel model_of_sample(const balancer::BalanceModel& model, std::span<const rpc::SampledBucket> sample);

enum class BalanceMode { Off, Advise, On };

// The settings of the balancer in a live configuration.
BalanceMode balance_mode(const SettingValues& config);
LoadMeasure load_measure(const SettingValues& config);
const balancer::BalancingAlgorithm& balance_algorithm(const SettingValues& config);
Duration balance_round_time(const SettingValues& config);

/// Returns the estimated seconds that moves take.
std::uint64_t seconds_for(std::span<const BalancedReplica> moves, const SettingValues& config);

}  // namespace fjord::fleetcontroller
