#pragma once

#include <string>

#include "fjord/tuner/hardware_profile.h"
#include "fjord/tuner/settings.h"
#include "fjord/tuner/workload.h"

namespace fjord::tuner {

/// Costs of the store's work that do not depend on the machine. Sources: docs/performance-parts.md (CPU time of
/// processes per operation), docs/experiments/many-documents.md (memory and time of indexes), storage/FORMAT.md.
struct StoreFacts {
  double decode_rate = 500e6;  ///< Decode rate, bytes/s, of the machine on which the CPU times below were measured.
  double index_bytes_per_document = 50;
  double index_disk_bytes_per_document = 48;
  double index_load_s_per_document = 0.3e-6;
  double read_cpu_s = 17e-6;
  double write_cpu_s = 8e-6;
  double scan_cpu_s_per_document = 2e-6;
  double docblock_cpu_s = 60e-6;
  double run_cpu_s = 20e-6;           ///< CPU time in the stripe to write a run to a slotfile, without copying.
  double rewrite_step_cpu_s = 50e-6;  ///< CPU time in the stripe to rewrite one MiB of a slotfile, without copying.
  double bucket_scan_s = 1.5e-3;      ///< Time to open, list and finish one bucket in a visit, calls included.
  /// Mean fill: buckets and slotfiles that split in two are between half full and full.
  double bucket_fill = 0.7;
  double disk_bytes_per_byte = 1.13;  ///< Bytes in files for each byte of documents (docs/performance-engine.md).
  double dead_share_max = 0.3;        ///< storage.dead_percent_max as a share.
  double readahead_bytes = 8.0 * (1 << 20);
  double docblocks_pending = 4;
  double stripes = 2;
  double memory_reserve_bytes = 384.0 * (1 << 20);  ///< Memory of the system and of the programs without their caches.
  double clients_per_node = 32;                     ///< Reads and writes in flight under full load.
};

/// Numbers and sizes of the buckets, slotfiles and runs of one storage node under given settings.
struct NodeShape {
  double documents = 0;
  double bytes = 0;
  double buckets_total = 0;
  double buckets = 0;
  double bucket_bytes = 0;
  double slotfile_bytes = 0;
  double slotfiles = 0;
  double entries_per_slotfile = 0;
  double run_bytes = 0;    ///< Bytes written to a slotfile at a time.
  double index_bytes = 0;  ///< Memory of the indexes of all documents.
  double page_bytes = 0;   ///< Memory left for the page cache; negative if the node has too little memory.
};
NodeShape shape_of(const Workload& workload, const Settings& settings, const StoreFacts& facts = {});

/// Returns the share of accesses that go to the `k` most popular of `n` documents if popularity follows Zipf's law.
double zipf_share(double k, double n, double exponent);

/// Predicted performance of a cluster under full load, that is, when clients and visits ask as much as they can.
struct Prediction {
  double operations_per_s = 0;   ///< Reads and writes per second of the whole cluster.
  double scan_bytes_per_s = 0;   ///< Bytes per second that visits and jobs read, whole cluster.
  double p99_s = 0;              ///< p99 latency of reads and writes, in seconds.
  double node_memory_bytes = 0;  ///< Memory that the settings allow a node to use, without the page cache.
  bool fits = true;              ///< Whether `node_memory_bytes` fits in a node's memory.
  double page_hit = 0;           ///< Share of reads that find the document in the page cache.
  double index_hit = 0;
  std::string binding;  ///< The busiest resource: "disk reads", "disk transfer", "cpu", "stripes", "network", "memory".
  double objective = 0;
};

/// The quantity that the advisor maximizes: operations^(1 - s) * scans^s * min(1, target / p99), s = scan_share.
/// Operations count up to Workload::operations_that_count().
double objective_of(const Workload& workload, double operations_per_s, double scan_bytes_per_s, double p99_s);

/// Seconds that one operation and one docblock of a visit occupy a stripe, without waiting for others.
struct StripeTimes {
  double operation_s = 0;
  double docblock_s = 0;
};
StripeTimes stripe_times(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                         const StoreFacts& facts = {});

/// Predicts by a queueing network with two classes of customers (operations, visitors) and the stations CPU, stripes,
/// disk reads, disk transfer and network, solved by approximate mean value analysis. Takes microseconds; a pure
/// function.
Prediction predict(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                   const StoreFacts& facts = {});

}  // namespace fjord::tuner
