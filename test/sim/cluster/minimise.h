#pragma once

#include <functional>

#include "fjord/sim/scenarios.h"

namespace fjord::sim {

/// A run that still breaks the same invariant.
struct Minimised {
  ScenarioOptions options;
  ScenarioResult result;
  unsigned runs = 0;  ///< That it took to find it.
};

/// Leaves out faults of the run of `options`, whose outcome is `failed`, and ends it earlier, as long as `run` breaks
/// the same invariant. Each run is another history, so what is left need not be the least, only enough.
Minimised minimise(const std::function<ScenarioResult(const ScenarioOptions&)>& run, const ScenarioOptions& options,
                   const ScenarioResult& failed);

}  // namespace fjord::sim
