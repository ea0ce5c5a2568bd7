#pragma once

#include <algorithm>
#include <optional>

#include "fjord/common/clock.h"

namespace fjord::mapreduce {

/// Writes of abandoned tasks and pumps that may still be in flight. They put rows of this job; once the job has ended,
/// another job may put newer rows under the same ids.
///
/// Threading: confined.
class LateWrites {
 public:
  /// Tasks or a pump were abandoned; their writes are in flight for `longest` at most.
  void note(MonotonicTime now, Duration longest) { until_ = now + longest; }
  /// Returns for how long writes may still be in flight.
  Duration left(MonotonicTime now) const { return until_ ? std::max(Duration(0), *until_ - now) : Duration(0); }

 private:
  std::optional<MonotonicTime> until_;
};

}  // namespace fjord::mapreduce
