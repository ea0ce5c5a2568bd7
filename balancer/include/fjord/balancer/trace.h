#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "fjord/balancer/model.h"
#include "fjord/common/random.h"

namespace fjord::balancer {

/// Sizes of a simulated cluster and its load.
struct TraceOptions {
  std::uint32_t buckets = 16384;
  std::size_t nodes = 20;
  double operations = 600'000;  ///< Number of operations in a round, over all buckets.
  /// Length of a round. `moving-hotspot` gives the times in which buckets get hot and cold in rounds of length 1.
  double round = 1.0;
  std::uint64_t seed = 1;
};

/// A simulated load: how many operations users send to each bucket, round by round. Equal options give equal loads.
class Trace {
 public:
  virtual ~Trace() = default;
  /// The number of replicas of a bucket and the part of reads among the operations that the trace is made for.
  virtual unsigned redundancy() const { return 1; }
  virtual double read_part() const { return 0.9; }
  /// Sets the expected number of operations on each bucket in a round. Rounds are asked for in ascending order, each
  /// once.
  virtual void fill(std::uint64_t round, std::span<double> operations) = 0;
  /// Adds and removes nodes at the beginning of a round.
  virtual void change_nodes(std::uint64_t round, std::vector<BalanceNode>& nodes);
  /// Returns the round of the event to which the balancer has to react; 0 if the trace has no event.
  virtual std::uint64_t event_round() const { return 0; }
  /// Returns the topics of the current round; empty if the trace has none.
  virtual std::vector<Topic> topics() const { return {}; }
};

/// Returns `zipf`, `moving-hotspot`, `flash` (one bucket at a time is suddenly hot), `diurnal`, `alternating` (two
/// loads take turns, round by round), `step`, `node-add`, `node-loss` and `topics`.
std::span<const std::string_view> trace_names();
/// Returns null if there is no trace of that name.
std::unique_ptr<Trace> make_trace(std::string_view name, const TraceOptions& options);

/// Draws a number from the Poisson distribution; for means above 30 from the normal distribution, which is close to it.
double draw_poisson(Random& random, double mean);
/// Draws a number from the standard normal distribution.
double draw_normal(Random& random);

}  // namespace fjord::balancer
