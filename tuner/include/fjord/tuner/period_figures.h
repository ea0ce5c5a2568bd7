#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace fjord::tuner {

/// What a cluster did in a period, as its metrics say. Rates are of the whole cluster, by the second.
struct PeriodFigures {
  double seconds = 0;
  double reads_per_s = 0;   ///< Answered by distributors.
  double writes_per_s = 0;  ///< Put, update, remove.
  double failed_per_s = 0;  ///< Refused, not applied or in doubt.
  double operations = 0;    ///< In the whole period, failed ones included.
  double pending = 0;       ///< Operations under way at its end.
  /// From arrival at a distributor to the answer. Nothing if nothing was asked.
  std::optional<double> p99_s;
  std::optional<double> mean_s;

  double node_operations_per_s = 0;  ///< Of storage nodes: an operation counts on each replica.
  double docblocks_per_s = 0;
  double scan_bytes_per_s = 0;
  double visitors_running = 0;  ///< At both ends of the period; the lesser.
  double visitors_queued = 0;   ///< At its end.
  /// Time for which maintenance waited for its budget.
  double throttled_share = 0;

  double resident_bytes = 0;      ///< Of the storage process that has most.
  double fullest_used_share = 0;  ///< Of the file systems of the storage nodes.

  std::size_t nodes_read = 0;
  std::size_t nodes_silent = 0;  ///< That did not answer at one end of the period.

  double operations_per_s() const { return reads_per_s + writes_per_s; }
  /// Of what was asked, that was done. 1 if nothing was asked.
  double served_share() const;
};

/// What is compared before and after a change. Larger is better.
struct Objective {
  /// Served share times min(1, target / p99): how the foreground is against what was promised to it.
  double foreground = 0;
  /// The same, by how many operations a second one client gets that has always one under way (1 / mean). Unlike the
  /// rate it does not fall when clients ask less.
  double speed = 0;
  /// Bytes of visits a second. Nothing while no visitor was running throughout.
  std::optional<double> scans;
  double demand = 0;  ///< Operations a second: only to see whether periods can be compared.

  /// speed^(1 - share) * scans^share.
  double total(double scan_share) const;
};

/// Fewer operations in a period say nothing.
inline constexpr double kLeastOperations = 20;

/// Nothing if too little was asked to say anything. Operations under way of which none ended make it 0.
std::optional<Objective> objective_of(const PeriodFigures& figures, double target_s);

}  // namespace fjord::tuner
