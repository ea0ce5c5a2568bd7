#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fjord::tuner {

/// Writes to slotfiles of about one size, means of those that were timed.
struct PutCost {
  double puts = 0;      ///< That were timed.
  double entries = 0;   ///< Of a slotfile.
  double put_s = 0;     ///< In the engine, the journal included.
  double search_s = 0;  ///< Of that, for finding the entry in the slotfile, loading its index included.
};

struct NodePuts {
  std::uint64_t node = 0;  ///< The same number in all periods.
  std::vector<PutCost> costs;
};

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

  std::vector<NodePuts> puts;  ///< Of each storage node whose engine says it.
  /// Of the time, that a storage node waited for indexes and for documents from the medium, in operations on single
  /// documents; the mean of the nodes. Waits of several stripes add up.
  double index_wait_share = 0;
  double document_wait_share = 0;
  double index_bytes_all = 0;         ///< What all indexes would take, on the node with most.
  double cache_bytes = 0;             ///< For indexes and cached files, on the node with least; 0: not known.
  double memory_available_bytes = 0;  ///< The same, without what indexes have now.

  double resident_bytes = 0;      ///< Of the storage process that has most.
  double fullest_used_share = 0;  ///< Of the file systems of the storage nodes.

  std::size_t nodes_read = 0;
  std::size_t nodes_silent = 0;  ///< That did not answer at one end of the period.

  double operations_per_s() const { return reads_per_s + writes_per_s; }
  /// Of the time of the puts that were timed, what finding their entries took. 0 if there were none.
  double search_share() const;
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
