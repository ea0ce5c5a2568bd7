#pragma once

#include <chrono>
#include <cstdint>

namespace fjord {

using Duration = std::chrono::microseconds;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A point on the monotonic time line of one process; only differences have a meaning.
struct MonotonicTime {
  std::int64_t us = 0;

  friend auto operator<=>(const MonotonicTime&, const MonotonicTime&) = default;
  friend MonotonicTime operator+(MonotonicTime t, Duration d) { return {t.us + d.count()}; }
  friend MonotonicTime operator-(MonotonicTime t, Duration d) { return {t.us - d.count()}; }
  friend Duration operator-(MonotonicTime a, MonotonicTime b) { return Duration(a.us - b.us); }
};

/// Microseconds since 1970-01-01 UTC. Can step back.
struct WallTime {
  std::int64_t us = 0;
  friend auto operator<=>(const WallTime&, const WallTime&) = default;
};

/// Tells the time. `now` is for intervals and deadlines, `wall_now` for timestamps that users and other nodes see. The
/// two are never mixed.
/// Threading: every thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual MonotonicTime now() const = 0;
  virtual WallTime wall_now() const = 0;
};

/// The clocks of the operating system.
class SystemClock final : public Clock {
 public:
  MonotonicTime now() const override;
  WallTime wall_now() const override;
};

}  // namespace fjord
