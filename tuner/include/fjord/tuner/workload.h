#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fjord/common/result.h"
#include "fjord/tuner/hardware_profile.h"
#include "fjord/tuner/settings.h"

namespace fjord::tuner {

/// What a cluster has to hold and to do, and what it is made of: the input of the advisor. All of it can be in a file
/// (parse_workload()); docs/operating/tuning.md describes it. Rates are those of the whole cluster.
struct Workload {
  double documents = 1e6;
  double document_bytes = 1000;      ///< Mean.
  double document_bytes_p99 = 4000;  ///< 99 % are not larger.

  double reads_per_s = 1000;
  double writes_per_s = 500;
  double overwrite_share = 0.2;         ///< Of the writes, those that replace or remove a document.
  double key_skew = 0.8;                ///< Exponent of Zipf's law by which documents are read; 0: all alike.
  double scan_share = 0.2;              ///< How much visits and jobs matter, against single reads and writes; 0 to 1.
  double map_s_per_document = 0;        ///< CPU time of the map function of jobs.
  double tuple_bytes_per_document = 0;  ///< What jobs emit; 0: there are no jobs.
  double job_output_bytes = 0;
  double job_traffic_share = 0.25;  ///< Of the network, what jobs may take.

  std::int64_t redundancy = 2;
  bool sync = false;                  ///< Durability `sync`: each write survives a loss of power.
  double latency_target_s = 0.02;     ///< p99 of reads and writes.
  double longest_absence_s = 86'400;  ///< For which a node may be away and come back with its data.

  std::int64_t nodes = 3;
  std::int64_t cores = 4;                    ///< Of a storage node.
  double memory_bytes = 8.0 * (1ULL << 30);  ///< Of a storage node.

  /// What the file says of the disk and network of a node: stronger than a profile. 0: nothing.
  double disk_read_rate = 0;
  double disk_write_rate = 0;
  double disk_random_read_s = 0;
  double disk_iops = 0;
  double disk_sync_s = 0;
  double network_rate = 0;

  /// Current settings, where they are not the defaults.
  Settings current;

  double read_share() const { return reads_per_s + writes_per_s > 0 ? reads_per_s / (reads_per_s + writes_per_s) : 1; }
  double documents_per_node() const { return documents * static_cast<double>(redundancy) / static_cast<double>(nodes); }
  double bytes_per_node() const { return documents_per_node() * document_bytes; }
  double total_bytes() const { return documents * document_bytes; }
  /// `profile` with what the file says.
  HardwareProfile with_overrides(HardwareProfile profile) const;
};

/// Reads YAML. `file` is what messages call it.
/// Errors: InvalidArgument "file:line: key: what is wrong and what would be right".
Result<Workload> parse_workload(std::string_view yaml, const std::string& file);

/// A file with all keys, their units and meanings, that parse_workload() takes.
std::string example_workload();

}  // namespace fjord::tuner
