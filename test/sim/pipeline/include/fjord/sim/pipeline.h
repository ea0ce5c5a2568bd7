#pragma once

#include <cstdint>

#include "fjord/sim/data_router.h"

namespace fjord::sim {

/// The world of one run. Times are in units of the mean time between two changes of data.
struct PipelineOptions {
  std::uint64_t seed = 1;
  ProcessingOrder order = ProcessingOrder::Causal;
  MovedItems moved = MovedItems::NamedByMapper;
  std::uint32_t slaves = 2;  ///< Each slave has one distributor.
  std::uint32_t slices = 4;
  std::uint32_t items = 12;
  std::uint32_t changes = 60;
  double round = 5.0;  ///< Mean time between two quantums.
  /// Greatest mean delay of a link. The mean of each link is drawn, log-uniformly, from a hundredth of this value up. A
  /// message takes an exponential time with that mean, and does not overtake others of its link.
  double delay_max = 10.0;
};

struct PipelineResult {
  std::uint64_t removals = 0;  ///< Number of changes that remove an item.
  std::uint64_t moves = 0;     ///< Number of moves of slices.

  // --- Items at the end, when everything has arrived

  std::uint64_t removals_lost = 0;  ///< Number of items that a slave has although they were removed.
  std::uint64_t left_behind = 0;    ///< A slave has an item of a slice that is on another slave.
  std::uint64_t missing = 0;        ///< The slave that holds the slice lacks the item.
  std::uint64_t outdated = 0;       ///< The slave that holds the slice has an older version of the item.
  std::uint64_t never_processed = 0;

  // --- Times from a change to its arrival at the slave, without changes that a slave gets by a move

  std::uint64_t passed_on = 0;
  double waited = 0.0;  ///< Sum of the times of the changes in `passed_on`.

  std::uint64_t wrong() const { return removals_lost + left_behind + missing + outdated + never_processed; }
};

/// Runs a database, a mapper, distributors and slaves with any delays between them. Equal options give equal results.
/// The draws do not depend on `order` and `moved`: the same seed has the same changes, moves and delays.
PipelineResult run_pipeline(const PipelineOptions& options);

}  // namespace fjord::sim
