#pragma once

#include "fjord/balancer/algorithm.h"

namespace fjord::balancer {

/// Takes the loads of this round into the memory. Returns the model with the loads that are expected when a move that
/// begins now has ended, by Holt's method: level and trend, each smoothed. The trend of a slice counts as far as
/// its changes have one direction, and for no more than its last change. Afterwards the memory has one entry for each
/// slice of the model, in its order. Entries of other ranges are divided among the slices that overlap them.
BalanceModel forecast(const BalanceModel& model, Memory& memory);

/// Notes in the memory which replicas the plan moves, so that they do not move again for kCoolDownRounds. To be called
/// with the memory that forecast() has updated.
void remember_moves(const Plan& plan, std::uint64_t round, Memory& memory);

/// Returns true if the slice moved less than kCoolDownRounds ago.
bool is_cooling_down(const SliceMemory& memory, std::uint64_t round);

/// Returns true if the slice left `node` less than kNotBackRounds ago.
bool has_just_left(const SliceMemory& memory, std::uint16_t node, std::uint64_t round);

}  // namespace fjord::balancer
