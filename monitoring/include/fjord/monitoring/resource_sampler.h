#pragma once

#include "fjord/common/metrics.h"

namespace fjord {

/// Writes the resource usage of the process into metrics: fjord_process_cpu_seconds, _resident_bytes, _own_bytes,
/// _open_fds, _threads; its clock into fjord_process_clock_seconds; and fjord_machine_memory_available_bytes.
/// Threading: one thread at a time. Lifetime: the registry outlives the sampler.
class ResourceSampler {
 public:
  explicit ResourceSampler(MetricRegistry& registry);
  /// Reads /proc. A metric whose value cannot be read keeps its last value.
  void sample();

 private:
  Gauge& cpu_seconds_;
  Gauge& resident_bytes_;
  Gauge& own_bytes_;
  Gauge& available_bytes_;
  Gauge& open_fds_;
  Gauge& threads_;
  Gauge& clock_seconds_;
};

}  // namespace fjord
