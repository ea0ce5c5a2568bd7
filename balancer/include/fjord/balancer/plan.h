#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fjord/balancer/model.h"
#include "fjord/common/status.h"

namespace fjord::balancer {

enum class MoveKind : std::uint8_t {
  Place,      ///< Moves the replica of `range` from `from` to `to`; if both are equal, places a new one.
  Split,      ///< Splits `range` into two slices before bucket `at`.
  Merge,      ///< Merges `range` with the slice behind it, which has the same holders.
  ReadShare,  ///< Shifts `share` of all reads of `range` from `from` to `to`.
};

enum class MoveReason : std::uint8_t {
  NodeGone,      ///< The node that held the replica is not usable.
  FirstPlace,    ///< The slice had too few holders.
  Hot,           ///< The node is the hottest, or hotter than the algorithm allows.
  Swap,          ///< The slice was exchanged for a slice that moved the other way.
  Cold,          ///< The slice was cold: it was joined with a neighbour, to keep the number of slices small.
  Home,          ///< The slice was cold and moved where it needs no row of the table of overrides.
  TooHotToMove,  ///< The slice was split, because moving it whole would only make another node the hottest.
  Rule,          ///< The algorithm's rule of placement puts the slice there, whatever its load.
};

std::string_view to_string(MoveKind kind);
std::string_view to_string(MoveReason reason);

struct Move {
  MoveKind kind = MoveKind::Place;
  BucketRange range;
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint32_t at = 0;     ///< Split: first bucket of the second part.
  double share = 0.0;       ///< ReadShare: part of all reads of the slice that is shifted.
  std::uint64_t bytes = 0;  ///< Bytes that the move copies.
  double gain = 0.0;        ///< How much the move lowers the load of `from`.
  MoveReason reason = MoveReason::Hot;
};

/// Moves in the order in which they are applied. A plan fits only the model that it was made from.
struct Plan {
  std::vector<Move> moves;
  double imbalance_before = 1.0;
  double imbalance_after = 1.0;  ///< Imbalance after all moves if the loads stay as they are.
  std::uint64_t bytes = 0;       ///< Bytes that all moves copy together.
};

/// Returns the parts of a slice that is cut before bucket `at`. Load and bytes are divided by the number of buckets.
std::pair<Slice, Slice> parts_of(const Slice& slice, std::uint32_t at);

/// Applies one move to the model.
/// Errors: InvalidArgument if the slice is not there, or its holders do not fit the move; the model is unchanged then.
Status apply(const Move& move, BalanceModel& model);

/// Checks what must hold whatever algorithm made the plan. Each move fits the model that the earlier moves leave. No
/// replica goes to a node that is not usable, accepts nothing or is in the group of another replica. No slice in
/// transfer moves. The bytes are within model.step_bytes_max, and the rows of the table of overrides within
/// model.rows_max, not counting moves off a node that is gone.
/// Errors: InvalidArgument that names the first move that breaks a rule.
Status check(const Plan& plan, BalanceModel model);

}  // namespace fjord::balancer
