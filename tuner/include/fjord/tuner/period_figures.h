#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fjord::tuner {

/// Mean cost of the timed puts into slotfiles of about one size.
struct PutCost {
  double puts = 0;      ///< Number of timed puts.
  double entries = 0;   ///< Mean number of entries in the slotfile.
  double put_s = 0;     ///< Seconds of a put in the engine, the journal included.
  double search_s = 0;  ///< The part of `put_s` that finds the entry in the slotfile, the load of its index included.
};

struct NodePuts {
  std::uint64_t node = 0;  ///< Identifies the node in all periods.
  std::vector<PutCost> costs;
};

/// Activity of a cluster in one period, read from its metrics. Rates cover the whole cluster, per second.
struct PeriodFigures {
  double seconds = 0;
  double reads_per_s = 0;   ///< Reads per second that distributors answered.
  double writes_per_s = 0;  ///< Puts, updates and removes per second.
  double failed_per_s = 0;  ///< Operations per second that were refused, not applied or in doubt.
  double operations = 0;    ///< Operations in the whole period, failed ones included.
  double pending = 0;       ///< Operations in flight at the end of the period.
  /// Time from arrival at a distributor to the answer; nullopt if there was no operation.
  std::optional<double> p99_s;
  std::optional<double> mean_s;

  double node_operations_per_s = 0;  ///< Operations on storage nodes: an operation counts once for each replica.
  double docblocks_per_s = 0;
  double scan_bytes_per_s = 0;
  /// Running visitors: the lesser of the numbers at the start and at the end of the period.
  double visitors_running = 0;
  double visitors_queued = 0;  ///< Queued visitors at the end of the period.
  /// Seconds that maintenance waited for its budget, per second, summed over the storage nodes.
  double throttled_share = 0;

  std::vector<NodePuts> puts;  ///< One element for each storage node whose engine reports put costs.
  /// Share of the time that a storage node waited for the medium to read indexes and documents, in operations on single
  /// documents; mean of the nodes. Waits of several stripes add up.
  double index_wait_share = 0;
  double document_wait_share = 0;
  double index_bytes_all = 0;         ///< Bytes of all indexes of a node if all were loaded; the largest of the nodes.
  double cache_bytes = 0;             ///< Memory for indexes and cached files, the smallest of the nodes; 0: unknown.
  double memory_available_bytes = 0;  ///< `cache_bytes` without the memory that indexes occupy now.

  double resident_bytes = 0;      ///< Resident memory of the largest storage process.
  double fullest_used_share = 0;  ///< Used share of the fullest file system of a storage node.

  std::size_t nodes_read = 0;
  std::size_t nodes_silent = 0;  ///< Nodes that did not answer at the start or at the end of the period.

  double operations_per_s() const { return reads_per_s + writes_per_s; }
  /// Share of the timed puts' time that went into the search for their entries; 0 if no put was timed.
  double search_share() const;
  /// Share of the requested operations that succeeded; 1 if there was none.
  double served_share() const;
};

/// The figures that are compared before and after a change. Larger is better.
struct Objective {
  /// Served share times min(1, target / p99): how well operations of users meet their target.
  double foreground = 0;
  /// `foreground` / mean latency: the rate of one client that always has one operation in flight. Unlike the cluster's
  /// rate, it does not fall when clients ask less.
  double speed = 0;
  /// Bytes per second that visits read; nullopt unless a visitor was running at both ends of the period.
  std::optional<double> scans;
  double demand = 0;  ///< Operations per second; decides only whether two periods are comparable.

  /// Returns speed^(1 - scan_share) * scans^scan_share, or `speed` if no visitor was running.
  double total(double scan_share) const;
};

/// Minimum number of operations for a period to be comparable.
inline constexpr double kLeastOperations = 20;

/// Returns nullopt if there were too few operations. If operations were in flight and none ended, `speed` is 0.
std::optional<Objective> objective_of(const PeriodFigures& figures, double target_s);

}  // namespace fjord::tuner
