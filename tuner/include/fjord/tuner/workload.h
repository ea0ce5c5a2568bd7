#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/tuner/hardware_profile.h"
#include "fjord/tuner/settings.h"

namespace fjord::tuner {

/// Data, load and hardware of a cluster: the input of the advisor. A file can hold all of it (parse_workload());
/// docs/operating/tuning.md describes the file. Rates cover the whole cluster.
struct Workload {
  double documents = 1e6;
  double document_bytes = 1000;      ///< Mean size of a document, encoded.
  double document_bytes_p99 = 4000;  ///< 99th percentile of the document size.

  double reads_per_s = 1000;
  double writes_per_s = 500;
  /// Predicted reads and writes count up to this multiple of the wanted ones; 0: without a bound.
  double headroom = 2;
  double overwrite_share = 0.2;  ///< Share of writes that replace or remove a document.
  /// Exponent of Zipf's law for the popularity of documents in reads; 0: all equal.
  double key_skew = 0.8;
  double scan_share = 0.2;  ///< Weight of visits and jobs against single reads and writes; 0 to 1.
  /// The largest share of the operations that count, of visits, and of latency beyond its target, that advice may give
  /// up for a gain elsewhere; 0 to 1.
  double give_up_max = 0.1;
  double map_s_per_document = 0;        ///< CPU time of the map function of jobs.
  double tuple_bytes_per_document = 0;  ///< Bytes of tuples that a job emits for one document; 0: there are no jobs.
  double job_output_bytes = 0;
  double job_traffic_share = 0.25;  ///< Share of the network that jobs are allowed to use.

  std::int64_t redundancy = 2;
  bool sync = false;                  ///< Durability `sync`: each write survives a power failure.
  double latency_target_s = 0.02;     ///< Target for the p99 of reads and writes.
  double longest_absence_s = 86'400;  ///< Longest absence after which a node may return with its data.

  std::int64_t nodes = 3;
  std::int64_t cores = 4;                    ///< CPU cores of a storage node.
  double memory_bytes = 8.0 * (1ULL << 30);  ///< Memory of a storage node in bytes.

  /// Disk and network of a node, from the workload file; they override the hardware profile. 0: not given.
  double disk_read_rate = 0;
  double disk_write_rate = 0;
  double disk_random_read_s = 0;
  double disk_iops = 0;
  double disk_sync_s = 0;
  double network_rate = 0;

  /// The settings in force; keys absent from the file have their defaults.
  Settings current;

  /// Returns the operations per second beyond which more count for nothing: the demand and its headroom.
  double operations_that_count() const {
    return headroom > 0 ? headroom * (reads_per_s + writes_per_s) : std::numeric_limits<double>::infinity();
  }
  double read_share() const { return reads_per_s + writes_per_s > 0 ? reads_per_s / (reads_per_s + writes_per_s) : 1; }
  double documents_per_node() const { return documents * static_cast<double>(redundancy) / static_cast<double>(nodes); }
  double bytes_per_node() const { return documents_per_node() * document_bytes; }
  double total_bytes() const { return documents * document_bytes; }
  /// Returns `profile` with the constants that the file gives.
  HardwareProfile with_overrides(HardwareProfile profile) const;
};

/// Parses a workload from YAML. `file` is its name in error messages.
/// Errors: InvalidArgument "file:line: key: what is wrong and what would be right".
Result<Workload> parse_workload(std::string_view yaml, const std::string& file);

/// Returns an example file with all keys, their units and meanings, which parse_workload() accepts.
std::string example_workload();

}  // namespace fjord::tuner
