#pragma once

#include <string>

#include "fjord/tuner/hardware_profile.h"
#include "fjord/tuner/settings.h"
#include "fjord/tuner/workload.h"

namespace fjord::tuner {

/// What the store does with one operation, apart from the machine. Origin: docs/performance.md (CPU time of processes
/// over operations), docs/experiments/many-documents.md (memory and time of indexes), storage/FORMAT.md.
struct StoreFacts {
  double decode_rate = 500e6;  ///< Of the machine that these are of.
  double index_bytes_per_document = 50;
  double index_disk_bytes_per_document = 48;
  double index_load_s_per_document = 0.3e-6;
  double read_cpu_s = 17e-6;
  double write_cpu_s = 8e-6;
  double scan_cpu_s_per_document = 2e-6;
  double docblock_cpu_s = 60e-6;
  double run_cpu_s = 20e-6;           ///< To write a run to a slotfile, apart from copying; in the stripe.
  double rewrite_step_cpu_s = 50e-6;  ///< The same for a MiB of a slotfile that is written anew.
  double bucket_scan_s = 1.5e-3;      ///< To open, list and finish one bucket in a visit, calls included.
  double bucket_fill = 0.7;           ///< Buckets and slotfiles that split in two are between half full and full.
  double disk_bytes_per_byte = 1.13;  ///< What documents take in files (docs/performance-engine.md).
  double dead_share_max = 0.3;        ///< storage.dead_percent_max
  double readahead_bytes = 8.0 * (1 << 20);
  double docblocks_pending = 4;
  double stripes = 2;
  double memory_reserve_bytes = 384.0 * (1 << 20);  ///< The system and the programs without their caches.
  double clients_per_node = 32;  ///< Reads and writes under way at once when there is as much as can be done.
};

/// How the data of one storage node is divided under some settings.
struct NodeShape {
  double documents = 0;
  double bytes = 0;
  double buckets_total = 0;
  double buckets = 0;
  double bucket_bytes = 0;
  double slotfile_bytes = 0;
  double slotfiles = 0;
  double entries_per_slotfile = 0;
  double run_bytes = 0;    ///< What is written to a slotfile at a time.
  double index_bytes = 0;  ///< Of all documents.
  double page_bytes = 0;   ///< Left for the page cache; negative: there is too little memory.
};
NodeShape shape_of(const Workload& workload, const Settings& settings, const StoreFacts& facts = {});

/// Share of accesses that go to the `k` most popular of `n` documents when popularity follows Zipf's law.
double zipf_share(double k, double n, double exponent);

/// What is expected of a cluster under full load: as many reads and writes as clients and visits can bring about.
struct Prediction {
  double operations_per_s = 0;   ///< Reads and writes, of the cluster.
  double scan_bytes_per_s = 0;   ///< Visits and jobs, of the cluster.
  double p99_s = 0;              ///< Of reads and writes.
  double node_memory_bytes = 0;  ///< What the settings may take, without the page cache.
  bool fits = true;              ///< In the memory of a node.
  double page_hit = 0;           ///< Share of reads that find the document in memory.
  double index_hit = 0;
  std::string binding;  ///< What is busiest: "disk reads", "disk transfer", "cpu", "stripes", "network", "memory".
  double objective = 0;
};

/// operations^(1 - s) * scans^s * min(1, target / p99), s = scan_share: what the advisor makes large.
double objective_of(const Workload& workload, double operations_per_s, double scan_bytes_per_s, double p99_s);

/// For how long one operation and one docblock of a visit keep a stripe, without waiting for others.
struct StripeTimes {
  double operation_s = 0;
  double docblock_s = 0;
};
StripeTimes stripe_times(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                         const StoreFacts& facts = {});

/// A queueing network with two kinds of customers (operations, visitors) and the stations CPU, stripes, disk reads,
/// disk transfer and network, solved by approximate mean value analysis. Microseconds; a pure function.
Prediction predict(const Workload& workload, const HardwareProfile& profile, const Settings& settings,
                   const StoreFacts& facts = {});

}  // namespace fjord::tuner
