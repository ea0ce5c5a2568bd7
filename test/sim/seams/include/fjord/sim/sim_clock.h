#pragma once

#include "fjord/common/check.h"
#include "fjord/common/clock.h"

namespace fjord::sim {

/// Virtual time, the true time of a simulated world; it passes only by advance_to(). A process in that world reads a
/// SimNodeClock. Threading: one thread.
class SimClock final : public Clock {
 public:
  /// 2024-01-01T00:00:00Z: far from zero, so that a missing initialisation shows.
  static constexpr WallTime kDefaultWallStart{1'704'067'200'000'000};

  explicit SimClock(WallTime wall_start = kDefaultWallStart) : wall_start_(wall_start) {}

  MonotonicTime now() const override { return now_; }
  WallTime wall_now() const override { return {wall_start_.us + now_.us}; }

  /// Moves the time forward. Precondition: `time` is not before now().
  void advance_to(MonotonicTime time) {
    FJORD_CHECK(time >= now_);
    now_ = time;
  }

 private:
  WallTime wall_start_;
  MonotonicTime now_;
};

/// The clock of one simulated process. It runs as fast as the world's, but its wall clock may be wrong and may jump,
/// and its monotonic time starts at another value. Threading: one thread. Lifetime: `world` outlives it.
class SimNodeClock final : public Clock {
 public:
  struct Options {
    Duration wall_skew{0};
    Duration monotonic_offset{0};
  };

  explicit SimNodeClock(const Clock& world) : SimNodeClock(world, Options{}) {}
  SimNodeClock(const Clock& world, Options options) : world_(world), options_(options) {}

  MonotonicTime now() const override { return world_.now() + options_.monotonic_offset; }
  WallTime wall_now() const override { return {world_.wall_now().us + options_.wall_skew.count()}; }

  /// How far the wall clock is ahead of the true time.
  void set_wall_skew(Duration skew) { options_.wall_skew = skew; }
  Duration wall_skew() const { return options_.wall_skew; }
  /// Changes the wall clock by `step`; negative steps go back.
  void jump_wall(Duration step) { options_.wall_skew += step; }

 private:
  const Clock& world_;
  Options options_;
};

}  // namespace fjord::sim
