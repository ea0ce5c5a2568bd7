#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "space_guard.h"

namespace fjord::storage {

/// What a stripe has to know of the space.
struct SpaceState {
  SpaceStage stage = SpaceStage::Normal;
  unsigned refused_percent = 0;  ///< Of the puts, while throttling.
  /// Of puts that the node takes until the next measurement: what else could come too late on a fast disk.
  std::uint64_t budget_bytes = std::numeric_limits<std::uint64_t>::max();
  std::string reason;  ///< What was measured, and the setting that it ran into.

  /// OK, or NoSpace that names the node.
  Status check_external(const std::string& node) const;
  /// For what comes from other replicas.
  Status check_merge(const std::string& node) const;
};

/// Measures the space of a node's folder every second and tells whoever has to know. The limits are tunables,
/// storage.space_*, which count from the next measurement. A folder that cannot be asked leaves the stage as it is.
///
/// Threading: has an executor of its own, on which `tell` is called; a file system that hangs holds up nothing else.
/// Lifetime: `runtime` outlives it.
class SpaceMonitor {
 public:
  /// `node` is what messages call it. Nothing is measured without a directory.
  SpaceMonitor(std::string directory, std::string node, Runtime& runtime, std::function<void(const SpaceState&)> tell);

 private:
  void measure();
  SpaceLimits limits() const;
  void log_stage(SpaceStage before) const;

  const std::string directory_;
  const std::string node_;
  Env& env_;
  const std::function<void(const SpaceState&)> tell_;
  const Tunable& warn_percent_;
  const Tunable& throttle_percent_;
  const Tunable& refuse_external_percent_;
  const Tunable& refuse_all_percent_;
  const Tunable& hysteresis_percent_;
  const Tunable& reserve_bytes_;
  Gauge& stage_;
  Gauge& used_bytes_;
  Gauge& free_bytes_;
  Counter& failures_;
  SpaceGuard guard_;
  std::unique_ptr<Executor> executor_;  // Last: its tasks use all of the above.
};

}  // namespace fjord::storage
