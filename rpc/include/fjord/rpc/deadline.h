#pragma once

#include <algorithm>

#include "fjord/common/clock.h"

namespace fjord::rpc {

/// The time that a caller who waits for `left` gives to the callee. It is shorter, so that the callee's answer, which
/// says what is known at its deadline, arrives before the caller gives up: by a tenth, at least 1 ms and at most 250
/// ms. A caller with less than 2 ms gives half of it. Never less than 1 us, because 0 means the callee's default.
constexpr Duration time_for_callee(Duration left) {
  const Duration least = std::min<Duration>(milliseconds(1), left / 2);
  return std::max(left - std::clamp<Duration>(left / 10, least, milliseconds(250)), Duration(1));
}

}  // namespace fjord::rpc
