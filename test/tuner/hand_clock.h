#pragma once

#include "fjord/common/clock.h"

namespace fjord::tuner {

/// A clock that moves only by advance().
class HandClock final : public Clock {
 public:
  MonotonicTime now() const override { return now_; }
  WallTime wall_now() const override { return {now_.us}; }
  void advance(Duration duration) { now_ = now_ + duration; }

 private:
  MonotonicTime now_;
};

}  // namespace fjord::tuner
