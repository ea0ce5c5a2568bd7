#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "fjord/common/runtime.h"
#include "space_guard.h"

namespace fjord::storage {

/// The state of the disk, for the stripes.
struct SpaceState {
  SpaceStage stage = SpaceStage::Normal;
  unsigned refused_percent = 0;  ///< Percentage of the puts to refuse while throttling.
  /// Maximum bytes of puts to accept until the next measurement. Without this bound a fast disk could pass a limit
  /// between two measurements.
  std::uint64_t budget_bytes = std::numeric_limits<std::uint64_t>::max();
  /// Bytes that may be written in RefuseAll until the next measurement, by writes that another member has.
  std::uint64_t last_bytes = 0;
  std::string reason;     ///< The measured values and the setting that was exceeded.
  ErrorDetails exceeded;  ///< The exceeded setting and its value.

  /// Returns OK if writes from clients are accepted. Errors: NoSpace, naming the node.
  Status check_external(const std::string& node) const;
  /// Returns OK if entries from other replicas are accepted without a limit. Errors: NoSpace, naming the node.
  Status check_merge(const std::string& node) const;
};

/// Measures the space of a node's folder every second and reports it through `tell`. The limits are the tunables
/// storage.space_*, read at each measurement. If a measurement fails, the stage stays as it is.
///
/// Threading: has its own executor, on which `tell` is called, so that a file system that hangs delays nothing else.
/// Lifetime: `runtime` outlives it.
class SpaceMonitor {
 public:
  /// `node` is the node's name in messages. Nothing is measured if `directory` is empty.
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
  std::unique_ptr<Executor> executor_;  // The last member, because its tasks use all others.
};

}  // namespace fjord::storage
