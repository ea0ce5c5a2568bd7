#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "fjord/common/clock.h"

namespace fjord::storage {

/// Histogram of the times for which foreground operations waited for their stripe in a period. Each step is about a
/// fifth of its value wide.
/// Threading: from any thread.
class WaitCounts {
 public:
  void add(Duration wait);
  /// Returns the wait that 95 % of the operations since the last call did not exceed, and resets the counts. Empty if
  /// there were no operations.
  std::optional<Duration> take_quantile();

 private:
  static constexpr unsigned kSteps = 4;  ///< Steps for each doubling of the wait.
  static constexpr unsigned kDoublings = 32;
  static unsigned step_of(std::uint64_t us);
  static std::uint64_t end_of(unsigned step);

  std::array<std::atomic<std::uint32_t>, kSteps * kDoublings> counts_{};
};

/// The rate at which maintenance may move data. It is halved after each period in which maintenance makes users wait
/// longer than they do without it, and rises a little after the other periods (AIMD). Let w be the wait that 95 % of
/// the foreground operations of a period did not exceed, and b its *baseline*:
///
///     limit = 2 b + 2 ms
///     w > limit and something was moved     rate = max(floor, rate / 2)
///     w <= 0.9 limit, or no operations      rate = min(ceiling, rate + ceiling / 32)
///     nothing was moved, at the floor, or w < b     b = min(25 ms, b + (w - b) / 8)
///
/// So the baseline follows the users' wait at times when maintenance does not matter. If they wait as long while
/// maintenance is at the floor, maintenance is not the cause, and the rate rises again. With a wait of more than 52 ms
/// it never rises, because b is at most 25 ms. After 5 s in which nothing was moved, the rate is reset to a quarter of
/// the ceiling, where the next work begins.
///
/// A pure state machine on periods of kPeriod.
class YieldingRate {
 public:
  static constexpr Duration kPeriod = std::chrono::milliseconds(200);
  static constexpr Duration kSlack = std::chrono::milliseconds(2);
  static constexpr Duration kBaselineMax = std::chrono::milliseconds(25);

  struct Limits {
    /// The lowest rate, in bytes per second like all rates; a floor above the ceiling counts as the ceiling.
    std::uint64_t floor = 1;
    std::uint64_t ceiling = 1;
  };
  struct Period {
    std::optional<Duration> wait;  ///< The wait w of the class comment; empty if there were no foreground operations.
    bool moved = false;            ///< True if maintenance moved something.
  };

  explicit YieldingRate(const Limits& limits);
  void end_period(const Period& period, const Limits& limits);

  double bytes_per_s() const { return rate_; }
  Duration baseline() const { return Duration(static_cast<std::int64_t>(baseline_us_)); }
  /// Returns the wait above which the rate is halved.
  Duration limit() const { return 2 * baseline() + kSlack; }

 private:
  double rate_;
  double baseline_us_ = 0;
  unsigned idle_periods_ = 0;
};

}  // namespace fjord::storage
