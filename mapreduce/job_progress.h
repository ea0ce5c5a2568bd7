#pragma once

#include <cstdint>

#include "fjord/common/clock.h"

namespace fjord::mapreduce {

/// How fast the tasks of a phase end, and what follows for those that are left. Time in which the job was paused does
/// not count.
///
/// Threading: confined.
class JobProgress {
 public:
  struct Left {
    Duration time{0};   ///< 0: not known.
    Duration error{0};  ///< Standard deviation, if the times of tasks are as different as they are by chance.
  };

  /// A phase in which `done` tasks are done already.
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
