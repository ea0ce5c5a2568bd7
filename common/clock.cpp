#include "fjord/common/clock.h"

namespace fjord {

MonotonicTime SystemClock::now() const {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<microseconds>(since).count()};
}

WallTime SystemClock::wall_now() const {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<microseconds>(since).count()};
}

}  // namespace fjord
