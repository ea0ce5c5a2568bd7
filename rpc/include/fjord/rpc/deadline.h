#pragma once

#include <algorithm>

#include "fjord/common/clock.h"

namespace fjord::rpc {

/// Returns the timeout that a caller which waits for `left` passes to the callee. It is shorter than `left`, so that
/// the callee's answer at its deadline arrives before the caller gives up. The difference is a tenth of `left`, at
/// least 1 ms and at most 250 ms; below 2 ms it is half of `left`. The result is at least 1 us, because 0 means the
/// callee's default.
constexpr Duration time_for_callee(Duration left) {
  const Duration least = std::min<Duration>(milliseconds(1), left / 2);
  return std::max(left - std::clamp<Duration>(left / 10, least, milliseconds(250)), Duration(1));
}

}  // namespace fjord::rpc
