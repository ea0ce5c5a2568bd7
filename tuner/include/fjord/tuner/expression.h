#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fjord/common/result.h"

namespace fjord::tuner {

/// A named number of a formula.
struct Input {
  std::string name;  ///< letters, digits and _
  double value = 0;
  std::string unit;    ///< Unit for display: "bytes", "s" or "".
  std::string origin;  ///< Source of the value for display: "workload", "measured", "VDS 2007, 6.1.2", ...
};

/// Computes a formula: + - * / ( ), numbers, names of `inputs`, and the functions min, max, ceil, floor, log2, clamp(x,
/// low, high), and step(x), the power of two that is nearest by ratio. The formula that the advisor shows is the one it
/// computed, so users can compute it themselves. Errors: InvalidArgument with the position, also for a division by 0.
Result<double> evaluate(std::string_view formula, const std::vector<Input>& inputs);

}  // namespace fjord::tuner
