#pragma once

#include <functional>

#include "fjord/sim/scenarios.h"

namespace fjord::sim {

/// A smaller run that still breaks the same invariant.
struct Minimised {
  ScenarioOptions options;
  ScenarioResult result;
  unsigned runs = 0;  ///< Number of runs that the search took.
};

/// Leaves out faults of the run of `options`, whose outcome is `failed`, and shortens it, as long as `run` breaks the
/// same invariant. Each run is another history, so the remaining faults are enough but need not be minimal.
Minimised minimise(const std::function<ScenarioResult(const ScenarioOptions&)>& run, const ScenarioOptions& options,
                   const ScenarioResult& failed);

}  // namespace fjord::sim
