#pragma once

#include <cstdint>

#include "fjord/common/clock.h"

namespace fjord::mapreduce {

/// Estimates the remaining time of a phase from the rate at which its tasks end. Time in which the job is paused does
/// not count.
///
/// Threading: confined.
class JobProgress {
 public:
  struct Left {
    Duration time{0};  ///< Remaining time; 0: unknown.
    /// Standard deviation of `time`, assuming that the deviation of one task's time equals its mean.
    Duration error{0};
  };

  /// Begins a phase in which `done` tasks are already done.
  void begin(std::uint64_t done, MonotonicTime now);
  void pause(MonotonicTime now);
  void resume(MonotonicTime now);
  Left left(std::uint64_t done, std::uint64_t total, MonotonicTime now) const;

 private:
  MonotonicTime started_;
  std::uint64_t done_at_start_ = 0;
  MonotonicTime paused_;
  bool is_paused_ = false;
};

}  // namespace fjord::mapreduce
