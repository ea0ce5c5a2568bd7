#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fjord/balancer/algorithm.h"
#include "fjord/balancer/trace.h"
#include "fjord/common/clock.h"

namespace fjord::balancer {

struct SimulationOptions {
  TraceOptions trace;
  std::uint64_t rounds = 300;
  /// Rounds that the results leave out: the algorithm first has to balance the initial placement.
  std::uint64_t warm_up = 40;
  /// Share of all bytes that one step may move.
  double step_bytes_part = 0.01;
  std::uint64_t move_rounds = 2;  ///< Rounds from the decision to move a replica until the new replica serves.
  /// Cost of copying all bytes once, at each of the two ends, as a multiple of a round's operations.
  double copy_cost = 0.1;
  /// Rows of the cluster's table of overrides. A replica of a bucket that lies elsewhere than at first needs one, and
  /// so does a bucket whose reads are shared unevenly.
  std::size_t rows_max = 4096;
};

/// Measurements of one round.
struct RoundFigures {
  std::uint64_t round = 0;
  double imbalance = 1.0;   ///< Computed from the operations that each node did, including the cost of copying.
  std::size_t moves = 0;    ///< Number of replicas whose move was decided in this round.
  double bytes_part = 0.0;  ///< Bytes of these moves over all bytes.
};

struct SimulationResult {
  double mean = 1.0;  ///< Mean imbalance over the rounds after the warm-up.
  double p50 = 1.0;
  double p95 = 1.0;
  double max = 1.0;
  /// Rounds from the event of the trace (without one: from the start) until the imbalance is below 1.15; empty if it
  /// never is.
  std::optional<std::uint64_t> rounds_to_balance;
  double moves_per_round = 0.0;
  double bytes_part_mean = 0.0;
  /// Greatest RoundFigures::bytes_part, without the bytes that left a node that was gone.
  double bytes_part_max = 0.0;
  std::size_t rows = 0;    ///< Number of rows of the table of overrides at the end.
  std::size_t slices = 0;  ///< Number of slices at the end.
  Duration planning_max{};
  /// Unevenness of matches: the sum over topics of frequency times the most matches on one node, divided by the same
  /// sum for an even spread; mean over the rounds. 1 without topics [KBD 2020, 9.3].
  double topic_cost = 1.0;
  std::vector<RoundFigures> rounds;
};

/// Runs an algorithm against the loads of a trace. Ends the process if a plan does not pass check(), because that is a
/// fault of the algorithm, or if `options.rounds` end before the event of the trace. `clock` measures how long planning
/// takes.
SimulationResult simulate(const BalancingAlgorithm* algorithm, Trace& trace, const SimulationOptions& options,
                          const Clock& clock);

/// Returns a model of the cluster of `options`: each bucket is a slice of its own, with bytes but without load and
/// holders.
BalanceModel empty_model(const TraceOptions& options, unsigned redundancy);

}  // namespace fjord::balancer
