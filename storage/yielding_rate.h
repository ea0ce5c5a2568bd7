#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "fjord/common/clock.h"

namespace fjord::storage {

/// How long foreground operations waited for their turn in a period: counts in steps of a fifth of the value.
/// Threading: every thread.
class WaitCounts {
 public:
  void add(Duration wait);
  /// That 95 % of those since the last call did not exceed, and forgets them; empty if there were none.
  std::optional<Duration> take_quantile();

 private:
  static constexpr unsigned kSteps = 4;  ///< Of each doubling.
  static constexpr unsigned kDoublings = 32;
  static unsigned step_of(std::uint64_t us);
  static std::uint64_t end_of(unsigned step);

  std::array<std::atomic<std::uint32_t>, kSteps * kDoublings> counts_{};
};

/// How fast maintenance may move data: half as fast after each period in which users waited longer than they do without
/// it, a little faster after each other one (AIMD). With w, what 95 % of the foreground operations of a period waited
/// for their turn at most, and b, the *baseline* of that:
///
///     limit = 2 b + 2 ms
///     w > limit and something was moved     rate = max(floor, rate / 2)
///     w <= 0.9 limit, or no operations      rate = min(ceiling, rate + ceiling / 32)
///     nothing was moved, at the floor, or w < b     b = min(25 ms, b + (w - b) / 8)
///
/// So the baseline follows what users wait while maintenance does not matter. If they wait as long at the floor, it is
/// not maintenance that they wait for, and the rate rises again; but with a queue of more than 52 ms it never does.
/// After 5 s without anything to move the rate is a quarter of the ceiling, from which whatever comes next begins.
///
/// A pure state machine on periods of kPeriod.
class YieldingRate {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(200);
  static constexpr Duration kSlack = std::chrono::milliseconds(2);
  static constexpr Duration kBaselineMax = std::chrono::milliseconds(25);

  struct Limits {
    std::uint64_t floor = 1;  ///< Bytes per second, as all rates; above the ceiling it counts as the ceiling.
    std::uint64_t ceiling = 1;
  };
  struct Period {
    std::optional<Duration> wait;  ///< w; empty: no foreground operations.
    bool moved = false;            ///< Maintenance moved something.
  };

  explicit YieldingRate(const Limits& limits);
  void end_period(const Period& period, const Limits& limits);

  double bytes_per_s() const { return rate_; }
  Duration baseline() const { return Duration(static_cast<std::int64_t>(baseline_us_)); }
  /// Longer waits than this make it slower.
  Duration limit() const { return 2 * baseline() + kSlack; }

 private:
  double rate_;
  double baseline_us_ = 0;
  unsigned idle_periods_ = 0;
};

}  // namespace fjord::storage
