#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fjord/balancer/algorithm.h"
#include "fjord/balancer/trace.h"
#include "fjord/common/clock.h"

namespace fjord::balancer {

struct SimulationOptions {
  TraceOptions trace;
  std::uint64_t rounds = 300;
  /// Rounds before the figures begin: the time in which the first placement is brought into balance.
  std::uint64_t warm_up = 40;
  /// Part of all bytes that one step may move.
  double step_bytes_part = 0.01;
  std::uint64_t move_rounds = 2;  ///< Rounds from a decision until the new replica serves.
  /// Copying all bytes once would cost either end this many times the operations of a round.
  double copy_cost = 0.1;
};

/// What one round was like.
struct RoundFigures {
  std::uint64_t round = 0;
  double imbalance = 1.0;   ///< By the operations that each node did, with the cost of copying.
  std::size_t moves = 0;    ///< Replicas whose move was decided.
  double bytes_part = 0.0;  ///< Bytes of those moves over all bytes.
};

struct SimulationResult {
  double mean = 1.0;  ///< Imbalance over the rounds after the warm-up.
  double p50 = 1.0;
  double p95 = 1.0;
  double max = 1.0;
  /// Rounds from the event (or the start, if the trace has none) until the imbalance is below 1.15; the number of
  /// rounds that there were, if it never is.
  std::uint64_t rounds_to_balance = 0;
  double moves_per_round = 0.0;
  double bytes_part_mean = 0.0;
  double bytes_part_max = 0.0;  ///< Without what left a node that was gone.
  std::size_t rows = 0;         ///< Slices at the end with other holders than at first, or with uneven read shares.
  std::size_t slices = 0;       ///< At the end.
  Duration planning_max{};
  /// Mean over the rounds of the sum over topics of frequency times the most matches on one node, over that of an even
  /// spread; 1 without topics [KBD 2020, 9.3].
  double topic_cost = 1.0;
  std::vector<RoundFigures> rounds;
};

/// Lets an algorithm work against a trace. Ends the process if a plan does not pass check(): that is a fault of the
/// algorithm. `clock` measures how long planning takes.
SimulationResult simulate(const BalancingAlgorithm* algorithm, Trace& trace, const SimulationOptions& options,
                          const Clock& clock);

/// The cluster of the options with all buckets in one slice each, with bytes, without loads and holders.
BalanceModel empty_model(const TraceOptions& options, unsigned redundancy);

}  // namespace fjord::balancer
