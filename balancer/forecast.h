#pragma once

#include "fjord/balancer/algorithm.h"

namespace fjord::balancer {

/// Takes the loads of this round into the memory and returns the model with the loads that are expected when a move
/// that begins now has ended, by Holt's method: level and trend, each smoothed. The memory then has an entry for each
/// slice of the model, in its order; what was known of other ranges is divided among those that overlap them.
BalanceModel forecast(const BalanceModel& model, Memory& memory);

/// Notes which replicas the plan moves, so that they keep still for a while. To be called with the memory of
/// forecast().
void remember_moves(const Plan& plan, std::uint64_t round, Memory& memory);

/// Rounds that pass before a slice moves again.
inline constexpr std::uint64_t kCoolDownRounds = 6;

/// True if the slice moved less than kCoolDownRounds ago.
bool is_cooling_down(const SliceMemory& memory, std::uint64_t round);

}  // namespace fjord::balancer
