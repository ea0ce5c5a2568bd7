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
  double operations = 600'000;  ///< In a round, over all buckets.
  std::uint64_t seed = 1;
};

/// The load that users put on each bucket, round by round. Made from a seed; the same options give the same loads.
class Trace {
 public:
  virtual ~Trace() = default;
  /// Replicas of a bucket, and the part of the operations that are reads, for which the trace is meant.
  virtual unsigned redundancy() const { return 1; }
  virtual double read_part() const { return 0.9; }
  /// Sets the expected operations on each bucket. Rounds are asked for in ascending order, each once.
  virtual void fill(std::uint64_t round, std::span<double> operations) = 0;
  /// Adds and takes away nodes at the beginning of a round.
  virtual void change_nodes(std::uint64_t round, std::vector<BalanceNode>& nodes);
  /// Round in which something happens that the balancer has to answer; 0: nothing does.
  virtual std::uint64_t event_round() const { return 0; }
  /// Topics of this round; empty if the trace has none.
  virtual std::vector<Topic> topics() const { return {}; }
};

/// Names: `zipf`, `moving-hotspot`, `flash` (one bucket at a time is hot at once), `diurnal`, `step`, `node-add`,
/// `node-loss`, `topics`.
std::span<const std::string_view> trace_names();
/// Null if there is no such trace.
std::unique_ptr<Trace> make_trace(std::string_view name, const TraceOptions& options);

/// A number with the Poisson distribution; for means above 30 by the normal distribution.
double draw_poisson(Random& random, double mean);
/// A number with the standard normal distribution.
double draw_normal(Random& random);

}  // namespace fjord::balancer
