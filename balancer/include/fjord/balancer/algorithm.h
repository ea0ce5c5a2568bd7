#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fjord/balancer/model.h"
#include "fjord/balancer/plan.h"
#include "fjord/common/random.h"

namespace fjord::balancer {

/// What an algorithm remembers of a range from one step to the next.
struct SliceMemory {
  BucketRange range;
  double level = 0.0;             ///< Smoothed load.
  double trend = 0.0;             ///< Change of the load in a round.
  std::uint64_t moved_round = 0;  ///< Round in which a replica last moved; 0: never.
  std::uint16_t moved_from = 0;   ///< The node that it left then.
};

/// What an algorithm remembers of the rounds before. A value that is stored with the plans, so that another controller
/// goes on where the last one stopped. Belongs to one algorithm; another one begins with an empty memory.
struct Memory {
  std::vector<SliceMemory> slices;  ///< Ascending.
  /// `autoplacer`: first buckets of the slices that have had their turn.
  std::vector<std::uint32_t> done;
};

/// Decides what to move. Implementations have no state; any thread may call them.
///
/// Pure: the same model, memory and random numbers give the same plan. Every plan passes check().
class BalancingAlgorithm {
 public:
  virtual ~BalancingAlgorithm() = default;
  virtual std::string_view name() const = 0;
  /// One line for people.
  virtual std::string_view summary() const = 0;
  /// Places slices that have no holders.
  virtual Plan initialise(const BalanceModel& model, Random& random) const = 0;
  /// One step of an algorithm that runs for ever.
  virtual Plan step(const BalanceModel& model, Memory& memory, Random& random) const = 0;
};

/// All algorithms, the default one first. They live as long as the process.
const std::vector<const BalancingAlgorithm*>& algorithms();
/// Null if there is none of that name.
const BalancingAlgorithm* find_algorithm(std::string_view name);

}  // namespace fjord::balancer
