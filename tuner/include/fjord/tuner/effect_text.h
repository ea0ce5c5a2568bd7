#pragma once

#include <string>

#include "fjord/tuner/advisor.h"

namespace fjord::tuner {

/// Returns a predicted effect for display. If p99 misses its target, the text has only p99, as the gain then mostly
/// depends on how far p99 is over the target.
std::string effect_text(const Effect& effect);

}  // namespace fjord::tuner
