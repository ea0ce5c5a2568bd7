#pragma once

#include <cstdint>
#include <mutex>

#include "fjord/common/thread_annotations.h"

namespace fjord {

/// Measures the part of the machine's processor time that this process used, over the last half of a second or more.
///
/// Threading: any thread.
class ProcessLoad {
 public:
  ProcessLoad();
  /// Returns 0 to 1. Measures again at most twice a second.
  double part();

 private:
  std::mutex mutex_;
  std::int64_t measured_us_ FJORD_GUARDED_BY(mutex_);
  std::int64_t processor_us_ FJORD_GUARDED_BY(mutex_);
  double part_ FJORD_GUARDED_BY(mutex_) = 0.0;
};

}  // namespace fjord
