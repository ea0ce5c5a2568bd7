#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fjord/balancer/model.h"
#include "fjord/balancer/plan.h"
#include "fjord/common/random.h"

namespace fjord::balancer {

/// Rounds that pass before a moved slice may move again.
inline constexpr std::uint64_t kCoolDownRounds = 6;
/// Rounds that pass before a slice may move back to the node that it left.
inline constexpr std::uint64_t kNotBackRounds = 60;

/// What an algorithm remembers about a range of buckets from one step to the next.
struct SliceMemory {
  BucketRange range;
  double level = 0.0;             ///< Smoothed load of a round.
  double trend = 0.0;             ///< Smoothed change of the load from round to round.
  double expected = 0.0;          ///< Change of the load that the next round is expected to have.
  double load = 0.0;              ///< Load of the last round.
  double change = 0.0;            ///< Smoothed change of the load from round to round, slower than the trend.
  double change_size = 0.0;       ///< The same without the sign of the changes.
  std::uint64_t moved_round = 0;  ///< Round in which a replica of the range last moved; 0: never.
  std::uint16_t moved_from = 0;   ///< The node that the replica left in `moved_round`.
};

/// What an algorithm remembers about earlier rounds. It is stored with the plans, so that another controller can go on
/// from there. It belongs to one algorithm; another algorithm begins with an empty memory.
struct Memory {
  std::vector<SliceMemory> slices;  ///< Ascending by range.
  /// `autoplacer`: first buckets of the slices that it has moved already, ascending.
  std::vector<std::uint32_t> done;
};

/// Decides what to move. Implementations have no state; any thread may call them.
///
/// Pure: equal models, memories and random numbers give equal plans. Every plan passes check().
class BalancingAlgorithm {
 public:
  virtual ~BalancingAlgorithm() = default;
  virtual std::string_view name() const = 0;
  /// Describes the algorithm in one line for people.
  virtual std::string_view summary() const = 0;
  /// Returns the plan of a first placement: places the slices that have no holders.
  virtual Plan initialise(const BalanceModel& model, Random& random) const = 0;
  /// Returns the plan of one step. The caller takes steps for as long as the cluster runs. Requires a usable node.
  virtual Plan step(const BalanceModel& model, Memory& memory, Random& random) const = 0;
};

/// Returns all algorithms, the default one first. They live as long as the process.
const std::vector<const BalancingAlgorithm*>& algorithms();
/// Returns the algorithm of that name; null if there is none.
const BalancingAlgorithm* find_algorithm(std::string_view name);

}  // namespace fjord::balancer
