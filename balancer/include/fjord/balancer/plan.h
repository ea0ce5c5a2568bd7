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
  Place,      ///< The replica of `range` on `from` goes to `to`; `from` == `to`: a first placement.
  Split,      ///< `range` becomes two slices that meet at `at`.
  Merge,      ///< `range` and the slice behind it, which have the same holders, become one.
  ReadShare,  ///< `share` of all reads of `range` goes to `to` instead of `from`.
};

enum class MoveReason : std::uint8_t {
  NodeGone,      ///< A holder is not usable.
  FirstPlace,    ///< The slice had no holder.
  Hot,           ///< The node is the hottest, or above what the algorithm allows.
  Swap,          ///< Comes back for a slice that went the other way.
  Cold,          ///< Joined with a neighbour, to keep the number of slices small.
  TooHotToMove,  ///< Split, as the whole slice would only make another node the hottest.
  Rule,          ///< The algorithm's own rule places it there, whatever the load.
};

std::string_view to_string(MoveKind kind);
std::string_view to_string(MoveReason reason);

struct Move {
  MoveKind kind = MoveKind::Place;
  BucketRange range;
  std::uint16_t from = 0;
  std::uint16_t to = 0;
  std::uint32_t at = 0;     ///< Split: first bucket of the second slice.
  double share = 0.0;       ///< ReadShare: part of all reads of the slice.
  std::uint64_t bytes = 0;  ///< Bytes that are copied.
  double gain = 0.0;        ///< By how much the load of `from` falls.
  MoveReason reason = MoveReason::Hot;
};

/// Moves in the order in which they are applied. A plan belongs to the model that it was made from.
struct Plan {
  std::vector<Move> moves;
  double imbalance_before = 1.0;
  double imbalance_after = 1.0;  ///< If the loads stay as they are and all moves are done.
  std::uint64_t bytes = 0;       ///< Copied by all moves together.
};

/// The parts of a slice that is cut before bucket `at`. Its load and bytes are divided by the number of buckets.
std::pair<Slice, Slice> parts_of(const Slice& slice, std::uint32_t at);

/// Applies one move to the model.
/// Errors: InvalidArgument if its slice is not there, or a holder is not as the move says; the model is as it was.
Status apply(const Move& move, BalanceModel& model);

/// Checks what must hold whatever algorithm made the plan: each move fits the model that the moves before it leave; no
/// replica goes to a node that is not usable, accepts nothing or is in the group of another replica; no slice in
/// transfer moves; the bytes are within model.step_bytes_max, unless what they move leaves a node that is gone.
/// Errors: InvalidArgument that names the first move for which it does not hold.
Status check(const Plan& plan, BalanceModel model);

}  // namespace fjord::balancer
