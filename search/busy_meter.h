#pragma once

#include <cmath>
#include <mutex>

#include "fjord/common/clock.h"
#include "fjord/common/thread_annotations.h"

namespace fjord::search {

/// Measures the share of time that threads are busy, over about the last second; older time counts less and less.
///
/// Threading: any thread.
class BusyMeter {
 public:
  explicit BusyMeter(MonotonicTime now) : at_(now) {}

  /// Records that a thread was busy for `busy` until `now`.
  void add(Duration busy, MonotonicTime now) {
    const std::lock_guard lock(mutex_);
    fade(now);
    busy_ += static_cast<double>(busy.count());
  }
  /// Returns the busy share of `threads` threads, 0 to about 1.
  double part(MonotonicTime now, unsigned threads) {
    const std::lock_guard lock(mutex_);
    fade(now);
    return busy_ / (kMemory * threads);
  }

 private:
  static constexpr double kMemory = 1e6;  // Time constant of the decay, in us.

  void fade(MonotonicTime now) FJORD_REQUIRES(mutex_) {
    if (now <= at_) return;
    busy_ *= std::exp(-static_cast<double>((now - at_).count()) / kMemory);
    at_ = now;
  }

  std::mutex mutex_;
  MonotonicTime at_ FJORD_GUARDED_BY(mutex_);
  double busy_ FJORD_GUARDED_BY(mutex_) = 0.0;
};

}  // namespace fjord::search
