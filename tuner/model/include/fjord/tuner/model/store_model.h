#pragma once

#include <cstdint>

#include "fjord/tuner/hardware_profile.h"
#include "fjord/tuner/settings.h"
#include "fjord/tuner/workload.h"

namespace fjord::tuner::model {

/// The true properties of a simulated machine; a probe sees only a part of them.
struct SimulatedHardware {
  double cores = 4;
  double cpu_factor = 1;  ///< CPU time of all work, relative to the machine of docs/performance-parts.md.
  double seek_s = 120e-6;
  double channels = 8;  ///< Reads that the device serves in parallel.
  double read_rate = 500e6;
  double write_rate = 400e6;
  double sync_s = 1e-3;
  double open_s = 8e-6;
  double copy_rate = 6e9;
  double hash_rate = 5e9;
  double round_trip_s = 100e-6;
  double network_rate = 125e6;
  /// Share of reads that take ten times as long (garbage collection of an SSD, a neighbour).
  double slow_read_share = 0.005;
};

/// Returns the profile that a probe would measure of that machine, with errors of some percent that `seed` decides.
HardwareProfile probe(const SimulatedHardware& hardware, std::uint64_t seed);

struct Outcome {
  double operations_per_s = 0;  ///< Reads and writes per second of the whole cluster.
  double scan_bytes_per_s = 0;  ///< Bytes per second read by visits and jobs, whole cluster.
  double p99_s = 0;             ///< p99 of reads and writes, in seconds.
  double objective = 0;         ///< objective_of() of the figures above.
  double page_hit = 0;          ///< Share of reads that found the document in memory.
  double index_hit = 0;         ///< Share of operations that found the index of the slotfile in memory.
};

/// Simulates one storage node of a cluster, operation by operation: 32 clients that ask again as soon as they are
/// answered, visitors that read one docblock after the other, background writes and rewrites of slotfiles, on stripes,
/// CPUs, a disk with channels and a page cache. Does not use the advisor's formulas: README.md lists what is simulated.
///
/// Deterministic: equal arguments give an equal outcome. `operations` is the number of operations simulated after a
/// warm-up of a fifth of it.
Outcome simulate(const Workload& workload, const SimulatedHardware& hardware, const Settings& settings,
                 std::uint64_t seed, int operations = 1500);

}  // namespace fjord::tuner::model
