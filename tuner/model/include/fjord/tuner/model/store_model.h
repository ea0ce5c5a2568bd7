#pragma once

#include <cstdint>

#include "fjord/tuner/hardware_profile.h"
#include "fjord/tuner/settings.h"
#include "fjord/tuner/workload.h"

namespace fjord::tuner::model {

/// A machine of the simulation: what it really does, of which a probe sees a part.
struct SimulatedHardware {
  double cores = 4;
  double cpu_factor = 1;  ///< CPU time of everything, relative to the machine of docs/performance.md.
  double seek_s = 120e-6;
  double channels = 8;  ///< Reads that the device works on at once.
  double read_rate = 500e6;
  double write_rate = 400e6;
  double sync_s = 1e-3;
  double open_s = 8e-6;
  double copy_rate = 6e9;
  double hash_rate = 5e9;
  double round_trip_s = 100e-6;
  double network_rate = 125e6;
  /// A read now and then takes ten times as long (garbage collection of an SSD, a neighbour).
  double slow_read_share = 0.005;
};

/// What a probe would say of that machine, with errors of some percent; `seed` decides which.
HardwareProfile probe(const SimulatedHardware& hardware, std::uint64_t seed);

struct Outcome {
  double operations_per_s = 0;  ///< Reads and writes of the cluster.
  double scan_bytes_per_s = 0;  ///< Of visits and jobs, of the cluster.
  double p99_s = 0;             ///< Of reads and writes.
  double objective = 0;         ///< objective_of() of these.
  double page_hit = 0;          ///< Of the reads, those that found the document in memory.
  double index_hit = 0;         ///< Of the operations, those that found the index of the slotfile in memory.
};

/// One storage node of a cluster, operation by operation: 32 clients that ask again as soon as they are answered,
/// visitors that read docblock after docblock, writing and rewriting of slotfiles behind, on stripes, CPUs, a disk with
/// channels and a page cache. Not the formulas of the advisor: README.md says what is simulated and what is not.
///
/// Deterministic: equal arguments give an equal outcome. `operations` is how many are simulated after a warm-up of a
/// fifth of that.
Outcome simulate(const Workload& workload, const SimulatedHardware& hardware, const Settings& settings,
                 std::uint64_t seed, int operations = 1500);

}  // namespace fjord::tuner::model
